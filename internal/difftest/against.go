package difftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hugelab/hugelab/mm"
)

// CheckAndSave is Check with the kernel's answers written to a file.
func CheckAndSave(ctx context.Context, o Options, file io.Writer) (*Report, error) {
	w, err := NewAnswersWriter(file, AnswersHeader{Kernel: o.Kernel, NoZeroPage: o.Rules.NoZeroPage})
	if err != nil {
		return nil, err
	}
	o.Save = w.Add
	rep, err := Check(ctx, o)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return rep, err
}

// CheckAgainst holds the model to the answers of a kernel that a file has. The
// programs and the rules are the file's; of the options the rest counts.
func CheckAgainst(ctx context.Context, o Options, file io.Reader) (*Report, error) {
	in, err := NewAnswersReader(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	o.Kernel = in.Kernel
	if o.Rules, err = mm.RulesFor(in.Kernel); err != nil {
		return nil, fmt.Errorf("answers: of kernel %s: %w", in.Kernel, err)
	}
	o.Rules.NoZeroPage = in.NoZeroPage
	rep := newReport(&o)
	begin := time.Now()
	for err == nil && ctx.Err() == nil && !rep.enough(&o) {
		err = rep.against(&o, in)
	}
	rep.time(begin)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return rep, err
}

// against deals with the next program of a file; io.EOF when there is none.
func (r *Report) against(o *Options, in *AnswersReader) error {
	var answers Answers
	p, err := in.Next(&answers)
	if err != nil {
		return err
	}
	if p == nil {
		return io.EOF
	}
	watch, err := o.watch(p)
	if err != nil {
		return err
	}
	out, err := Judge(p, o.model, &answers, watch)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p)
	}
	r.add(p, &out)
	if d := out.Difference; d != nil {
		r.mismatch(o, &Mismatch{From: p.Name, Program: p.String(), Difference: *d})
	}
	if o.OnProgress != nil {
		o.OnProgress(r)
	}
	return nil
}
