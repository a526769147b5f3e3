package store

import (
	"fmt"
	"slices"
)

// Version is the version of the tables that this package writes and the newest
// that it reads. It is the file's user_version.
const Version = 5

var (
	tables  = slices.Concat(tables4, digestTables)
	tables4 = slices.Concat(tables3, rollupTables)
	tables3 = slices.Concat(tables2, campaignTables)
)

// tables2 are the statements that make the tables and indices of runs, in order.
// Keys are numbers that grow, so that rows are written behind each other; what
// is said often is a row of names. Times are in the units of their columns'
// names, moments in milliseconds since 1970.
var tables2 = []object{
	{"names", `CREATE TABLE names (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT`},
	{"runs", `CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  command TEXT NOT NULL,            -- plumb run
  arguments TEXT NOT NULL,          -- JSON: those behind plumb
  started_ms INTEGER NOT NULL,
  ended_ms INTEGER,                 -- NULL while it is under way, or was killed
  elapsed_ms INTEGER NOT NULL,      -- of all times it was gone on with
  complete INTEGER NOT NULL,        -- 1 where every case is in cases
  exit INTEGER,                     -- the exit code
  seed TEXT NOT NULL,
  plumb TEXT NOT NULL,              -- its version and build
  environment TEXT NOT NULL,        -- JSON
  passed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  unsupported INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  unrecorded INTEGER NOT NULL
) STRICT`},
	{"subjects", `CREATE TABLE subjects (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  n INTEGER NOT NULL,               -- 0 is the reference
  name INTEGER NOT NULL REFERENCES names (id),
  version TEXT NOT NULL,
  PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID`},
	{"recordings", `CREATE TABLE recordings (
  run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  config TEXT NOT NULL,
  config_sha256 TEXT NOT NULL,
  baseline_sha256 TEXT NOT NULL,    -- of the manifest
  flags TEXT NOT NULL               -- JSON: what changes verdicts
) STRICT`},
	{"cases", `CREATE TABLE cases (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  n INTEGER NOT NULL,               -- in the order of the run
  test INTEGER NOT NULL,
  name INTEGER NOT NULL,     -- of a recorded case, else ''
  variant INTEGER NOT NULL,  -- of a recorded case, such as inplace
  number INTEGER NOT NULL,          -- of the case in its test or baseline
  program BLOB,                     -- the id of its text, 8 bytes
  subject INTEGER NOT NULL,
  mode INTEGER NOT NULL,
  operator INTEGER NOT NULL,
  dtypes INTEGER NOT NULL,   -- of the arguments, distinct, in order
  outcome INTEGER NOT NULL,         -- 0 unrecorded 1 skipped 2 unsupported 3 passed 4 failed
  verdict INTEGER NOT NULL,
  compared INTEGER NOT NULL,        -- tensors
  drawn INTEGER NOT NULL,           -- of these, judged by statistics
  worst REAL,                       -- observed error / limit
  worst_at INTEGER NOT NULL,
  elapsed_us INTEGER,               -- of the candidate
  reference_us INTEGER,
  PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID`},
	{"details", `CREATE TABLE details (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  n INTEGER NOT NULL,               -- of the case
  kind TEXT NOT NULL,               -- what is misaligned
  reason TEXT NOT NULL,
  lenient TEXT NOT NULL,            -- what DIOPI's comparison says: passes fails
  program TEXT NOT NULL,            -- its text, where the case failed
  PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID`},
	{"totals", `CREATE TABLE totals (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  kind INTEGER NOT NULL,            -- 1 subject 2 test 3 operator 4 dtype
  name INTEGER NOT NULL,     -- of the test, operator or dtype
  dtype INTEGER NOT NULL,    -- of an operator, else ''
  subject INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  verdict INTEGER NOT NULL,
  cases INTEGER NOT NULL,
  worst REAL,
  elapsed_us INTEGER NOT NULL,
  reference_us INTEGER NOT NULL,
  PRIMARY KEY (run, kind, name, dtype, subject, outcome, verdict)
) STRICT, WITHOUT ROWID`},
	{"totals_by_name", `CREATE INDEX totals_by_name ON totals (kind, name, run)`},
	{"findings", `CREATE TABLE findings (
  id INTEGER PRIMARY KEY,
  subject INTEGER NOT NULL REFERENCES names (id),
  operator INTEGER NOT NULL REFERENCES names (id),
  what TEXT NOT NULL,               -- how it fails, in one line
  UNIQUE (subject, operator, what)
) STRICT`},
	{"sightings", `CREATE TABLE sightings (
  finding INTEGER NOT NULL REFERENCES findings (id),
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  test INTEGER NOT NULL REFERENCES names (id),     -- the first in which it shows
  cases INTEGER NOT NULL,           -- that fail so
  reason TEXT NOT NULL,
  program TEXT NOT NULL,            -- the smallest
  bundle TEXT NOT NULL,             -- its folder
  proof TEXT NOT NULL,
  PRIMARY KEY (finding, run)
) STRICT, WITHOUT ROWID`},
	{"sightings_by_run", `CREATE INDEX sightings_by_run ON sightings (run)`},
}

// object is a table or an index with the statement that makes it.
type object struct{ name, text string }

// tablesOf are the objects of a version of the file.
func tablesOf(version int) []object {
	switch version {
	case 1:
		return tables1
	case 2:
		return tables2
	case 3:
		return tables3
	case 4:
		return tables4
	case Version:
		return tables
	}
	return nil
}

// marks say whose file it is, and of which version.
func marks() []string {
	return []string{fmt.Sprintf(`PRAGMA application_id = %d`, application), fmt.Sprintf(`PRAGMA user_version = %d`, Version)}
}

// Kind is what a row of totals is of.
type Kind int

// The kinds of totals. A case counts for each operator that its program calls,
// under the dtype of its first argument.
const (
	BySubject Kind = 1 + iota
	ByTest
	ByOperator
	ByDType
)
