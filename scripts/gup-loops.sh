#!/usr/bin/env bash
# Counts the instructions of one round of the loops that taking and releasing
# pages spends its time in, written here with the same memory accesses and
# compiled by gcc -O2. The figures are the gup.* keys of machines.
set -euo pipefail
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/loops.c" <<'C'
struct page { unsigned long flags, head; long rest[6]; };
static inline struct page *headof(struct page *p) {
  unsigned long h = *(volatile unsigned long *)&p->head;
  return h & 1 ? (struct page *)(h - 1) : p;
}
/* Fills an array with the pages that follow one another behind one entry. The
   page's number goes through the memory map, as for a block of any size. */
void fill(struct page *first, struct page **out, void **vmas, void *vma, unsigned long n) {
  for (unsigned long i = 0; i < n; i++) {
    if (out) *(struct page *volatile *)&out[i] = first + i;
    if (vmas) vmas[i] = vma;
  }
}
/* Looks up each page's head, and goes on while it is the same. */
unsigned long heads(struct page **a, unsigned long n, unsigned long (*found)(struct page *)) {
  struct page *before = 0;
  unsigned long r = 0;
  for (unsigned long i = 0; i < n; i++) {
    struct page *h = headof(a[i]);
    if (h == before) continue;
    before = h;
    r += found(h);
  }
  return r;
}
C
gcc -O2 -fno-unroll-loops -S -o "$tmp/loops.s" "$tmp/loops.c"
awk -v want="$1" '
  /^[a-z]+:/ { f = substr($1, 1, length($1)-1) }
  /^\t[a-z]/ { if ($1 !~ /^\./) print f, $0 }
  /^\.L/ { print f, $1 }' "$tmp/loops.s"
