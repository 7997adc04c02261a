package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hugelab/hugelab/internal/difftest"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// ComparePlan is what CompareReplay is to do.
type ComparePlan struct {
	Input predict.Input // the recording and the policies
	Every int           // operations between two comparisons
	Take  func(context.Context) (*kernel.Session, error)
}

// Compared is a recording replayed under one policy.
type Compared struct {
	Policy string
	*difftest.ReplayResult
	Took time.Duration // with the settings held
}

// CompareReplay replays a recording under each policy on the model and on the
// kernel, and compares their page maps on the way. A difference is looked for
// again, operation by operation. The settings are held for one policy at a time.
func CompareReplay(ctx context.Context, p ComparePlan) ([]Compared, error) {
	var all []Compared
	for i := range p.Input.Policies {
		row := &p.Input.Policies[i]
		if row.Hypothetical() || len(row.Lacks) > 0 {
			return all, fmt.Errorf("difftest: --policy %s: this kernel cannot have it", row.Name)
		}
		c := Compared{Policy: row.Name}
		if err := p.under(ctx, row, &c); err != nil || ctx.Err() != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

// under replays under one policy.
func (p *ComparePlan) under(ctx context.Context, row *predict.Named, c *Compared) (err error) {
	s, err := p.Take(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	defer func() {
		err = errors.Join(err, s.Restore())
		c.Took = time.Since(began)
	}()
	w := verifier{rows: []predict.Named{*row}, v: &Verification{}}
	d, err := w.quieten(s)
	if err != nil {
		return err
	}
	defer d.stop()
	if err := s.Apply(still(row.Policy)); err != nil {
		return err
	}
	if c.ReplayResult, err = p.once(ctx, row, 0, 0); err != nil || c.Difference == nil {
		return err
	}
	was := c.Difference
	if was.After+1 >= was.Op {
		return nil
	}
	if c.ReplayResult, err = p.once(ctx, row, was.After+1, was.Op); err == nil && c.Difference == nil {
		c.Notes = append(c.Notes, "the two sides differed once, and not when every operation was looked at: "+
			was.String())
	}
	return err
}

func (p *ComparePlan) once(ctx context.Context, row *predict.Named, from, to int) (
	*difftest.ReplayResult, error) {
	o, src, err := replayOf(p.Input, row)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	o.Every, o.From, o.To = p.Every, from, to
	return difftest.Replay(ctx, o)
}

// replayOf is what every replay of a recording under a policy needs. The caller
// closes the recording.
func replayOf(in predict.Input, row *predict.Named) (o difftest.ReplayOptions, src io.ReadCloser, err error) {
	in.Policies, in.Still = []predict.Named{*row}, true
	if src, err = in.Open(); err != nil {
		return o, nil, err
	}
	r, err := trace.NewReader(src)
	if err == nil {
		o.Stream, o.Stack = trace.NewReplay(r), mm.Bytes(r.Header.StackLimit)
		o.Config, err = in.Machine(&r.Header, 0)
	}
	if err != nil {
		src.Close()
		return o, nil, err
	}
	return o, src, nil
}
