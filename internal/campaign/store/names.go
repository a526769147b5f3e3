package store

import (
	"context"
	"database/sql"
)

// maxNames bounds the names whose ids a writer holds in memory.
const maxNames = 1 << 16

// interner gives names their ids.
type interner struct {
	ids          map[string]int64
	find, insert *sql.Stmt // of the transaction under way
}

func (in *interner) begin(ctx context.Context, tx *sql.Tx) (err error) {
	if in.ids == nil || len(in.ids) > maxNames {
		in.ids = map[string]int64{}
	}
	if in.find, err = tx.PrepareContext(ctx, `SELECT id FROM names WHERE text = ?`); err == nil {
		in.insert, err = tx.PrepareContext(ctx, `INSERT INTO names (text) VALUES (?)`)
	}
	return err
}

// id is the id of a name, which is added where the file lacks it.
func (in *interner) id(ctx context.Context, name string) (int64, error) {
	if id, ok := in.ids[name]; ok {
		return id, nil
	}
	text := cut(name, maxName)
	var id int64
	err := in.find.QueryRowContext(ctx, text).Scan(&id)
	if err == sql.ErrNoRows {
		var done sql.Result
		if done, err = in.insert.ExecContext(ctx, text); err == nil {
			id, err = done.LastInsertId()
		}
	}
	if err == nil {
		in.ids[name] = id
	}
	return id, err
}

// all are the ids of several names; the first error is kept.
func (in *interner) all(ctx context.Context, names ...string) ([]any, error) {
	out := make([]any, len(names))
	for i, name := range names {
		id, err := in.id(ctx, name)
		if err != nil {
			return nil, err
		}
		out[i] = id
	}
	return out, nil
}

// prepared are the statements of the transaction under way, each prepared once.
type prepared struct {
	tx *sql.Tx
	of map[string]*sql.Stmt
}

func (p *prepared) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	one := p.of[text]
	if one == nil {
		var err error
		if one, err = p.tx.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
		p.of[text] = one
	}
	return one.ExecContext(ctx, args...)
}
