//go:build amd64

package difftest

// judge holds the model to answers on a processor of its own, while the kernel
// gives the next ones.
//
//	job() --Record--> todo --the model, Compare--> done --next()--> free()
type judge struct {
	todo    chan *job
	judged  chan *job
	spare   []*job
	pending int // handed out and not yet taken back
}

// job is one program on its way.
type job struct {
	p       *Program
	answers *Answers
	out     Outcome
	err     error
}

// ahead is how many programs the kernel may be ahead of the model.
const ahead = 6

func startJudge(o *Options) *judge {
	j := &judge{todo: make(chan *job, ahead), judged: make(chan *job, ahead+2)}
	go func() {
		defer close(j.judged)
		for w := range j.todo {
			watch, err := o.watch(w.p)
			if err == nil {
				w.out, err = Judge(w.p, o.model, w.answers, watch)
			}
			w.err = err
			j.judged <- w
		}
	}()
	return j
}

// stop ends the goroutine when what it has is done.
func (j *judge) stop() {
	close(j.todo)
	for range j.judged {
	}
}

// job is an empty job for p.
func (j *judge) job(p *Program) *job {
	j.pending++
	w := &job{}
	if n := len(j.spare); n > 0 {
		w, j.spare = j.spare[n-1], j.spare[:n-1]
	}
	*w = job{p: p, answers: w.answers}
	return w
}

// next is a job that is done, nil where none is. With wait, or when as many are
// under way as may be, it waits for one.
func (j *judge) next(wait bool) *job {
	if wait || j.pending >= ahead {
		j.pending--
		return <-j.judged
	}
	select {
	case w := <-j.judged:
		j.pending--
		return w
	default:
		return nil
	}
}

// free takes a job's memory back.
func (j *judge) free(w *job) { j.spare = append(j.spare, w) }
