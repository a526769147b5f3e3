package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/nats-io/nats.go/jetstream"
)

// maxFile bounds a file that a worker takes from the coordinator.
const maxFile = 4 << 30

// keepFiles puts the files that workers may ask for into the bucket, each under the
// digest of its content. What is there from before it was killed needs no file.
func (c *Coordinator) keepFiles(ctx context.Context) error {
	for digest, path := range c.Files {
		if err := keepFile(ctx, c.bucket, digest, path); err != nil {
			return err
		}
	}
	return nil
}

// keepFile puts a file into the bucket, unless it is there.
func keepFile(ctx context.Context, bucket jetstream.ObjectStore, digest, path string) error {
	if _, err := bucket.GetInfo(ctx, digest); !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := bucket.Put(ctx, jetstream.ObjectMeta{Name: digest}, io.TeeReader(f, sum)); err != nil {
		return err
	}
	if is := hex.EncodeToString(sum.Sum(nil)); is != digest {
		return errors.Join(fmt.Errorf("%s has changed since the campaign was begun: its SHA-256 is %s, and was %s", path, is, digest), bucket.Delete(ctx, digest))
	}
	return nil
}

// File writes one of the coordinator's files, which is known by the SHA-256 of its
// content.
func (w *Worker) File(ctx context.Context, digest string, to io.Writer) error {
	if err := takeFile(ctx, w.bucket, digest, to, maxFile); err != nil {
		return fmt.Errorf("the coordinator's %w", err)
	}
	return nil
}

// takeFile writes a file of the bucket that has so many bytes at most.
func takeFile(ctx context.Context, bucket jetstream.ObjectStore, digest string, to io.Writer, most int64) error {
	from, err := bucket.Get(ctx, digest)
	if err != nil {
		return fmt.Errorf("file %s: %w", digest, err)
	}
	defer from.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, most+1))
	switch is := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return fmt.Errorf("file %s: %w", digest, err)
	case n > most:
		return fmt.Errorf("file %s takes more than %d GB", digest, most>>30)
	case is != digest:
		return fmt.Errorf("file %s is another, of SHA-256 %s", digest, is)
	}
	return nil
}
