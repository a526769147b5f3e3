package baseline

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestSeeded: a recording without results is small, is no baseline to judge by,
// and has what another recording is held to.
func TestSeeded(t *testing.T) {
	dir := t.TempDir()
	cfg := toyGen(dir, toyCases(2, 40, 3, 30000, 6))
	cfg.Seeded = true
	seeded, err := Gen(context.Background(), cfg)
	must(t, err)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v: want the manifest and the config alone", files, err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "holds no results: plumb conform gen --from") {
		t.Errorf("%v", err)
	}
	first, err := OpenSeeded(dir)
	must(t, err)
	full, err := Gen(context.Background(), toyGen(t.TempDir(), toyCases(2, 40, 3, 30000, 6)))
	must(t, err)
	if err := errors.Join(first.Manifest.Differs(full), seeded.Differs(full)); err != nil {
		t.Error(err)
	}
	other, err := Gen(context.Background(), toyGen(t.TempDir(), toyCases(2, 41, 3, 30000, 6)))
	must(t, err)
	if err := first.Manifest.Differs(other); err == nil || !strings.Contains(err.Error(), "shards have other bits than were recorded: cases-00000") {
		t.Errorf("%v", err)
	}
	full.Shards[0].SHA256, full.Plumb = strings.Repeat("0", 64), "other"
	if err := first.Manifest.Differs(full); err == nil || !strings.Contains(err.Error(), "and is other") {
		t.Errorf("%v", err)
	}
}

// TestSeededGoesOn: what was measured before an interruption is not recorded again.
func TestSeededGoesOn(t *testing.T) {
	dir := t.TempDir()
	cfg := toyGen(dir, toyCases(2, 40, 3, 30000, 6, 20000, 5, 7, 9, 11, 13, 15))
	cfg.Seeded, cfg.Jobs, cfg.Shard = true, 1, 1
	ctx, stop := context.WithCancel(context.Background())
	cfg.Progress = func(done, all int) {
		if done > 0 {
			stop()
		}
	}
	part, err := Gen(ctx, cfg)
	if err == nil || part.Complete || len(part.Shards) == 0 {
		t.Fatalf("%v, complete: %v", err, part.Complete)
	}
	already := -1
	cfg.Progress = func(done, all int) {
		if already < 0 {
			already = done
		}
	}
	whole, err := Gen(context.Background(), cfg)
	if err != nil || !whole.Complete || already <= 0 {
		t.Errorf("%v, complete: %v, %d cases taken over", err, whole.Complete, already)
	}
}
