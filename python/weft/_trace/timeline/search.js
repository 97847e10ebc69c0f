// Search: which ops have all words of the query in their name, place, kind, outcome, thread or variables.

class Hits {
  constructor(trace) {
    this.trace = trace;
    this.clear();
  }

  clear() {
    this.active = false;
    this.found = new Uint32Array(0);
    this.sum = undefined;
    this.marks = undefined;
    this.current = -1;
  }

  has(op) {
    return this.marks[op] === 1;
  }

  find(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    this.clear();
    if (!words.length) return;
    this.active = true;
    const { count, columns, spanOf } = this.trace;
    this.marks = new Uint8Array(count);
    const found = [];
    const test = this.#test(words);
    for (let op = 0; op < count; op++) {
      if (spanOf[op] < 0 || !test(op)) continue;
      this.marks[op] = 1;
      found.push(op);
    }
    this.found = Uint32Array.from(found).sort((one, other) => columns.started[one] - columns.started[other]);
    this.sum = new Uint32Array(columns.spanOp.length + 1);
    columns.spanOp.forEach((op, at) => (this.sum[at + 1] = this.sum[at] + this.marks[op]));
  }

  // Names and places are few, ops are many: each text is looked at once for each word.
  #test(words) {
    const { trace } = this;
    const { columns } = trace;
    const within = (texts, word) => Uint8Array.from(texts, (text) => text.toLowerCase().includes(word));
    const tests = words.map((word) => {
      const names = within(trace.names, word);
      const places = within(trace.places, word);
      const threads = within(trace.threads, word);
      const kinds = within(KINDS, word);
      const outcomes = within(OUTCOMES, word);
      const variables = within(trace.variables, word);
      return (op) =>
        names[columns.name[op]] ||
        places[columns.place[op]] ||
        kinds[columns.kind[op]] ||
        outcomes[columns.outcome[op]] ||
        threads[columns.worker[op] === NONE ? columns.pusher[op] : columns.worker[op]] ||
        trace.accesses(op).some((access) => variables[columns.accessVariable[access]]);
    });
    return (op) => tests.every((test) => test(op));
  }

  // The next match, or the one before; from the last one on to the first.
  step(by) {
    if (!this.found.length) return -1;
    this.current = this.current < 0 && by < 0 ? this.found.length - 1 : (this.current + by + this.found.length) % this.found.length;
    return this.found[this.current];
  }
}
