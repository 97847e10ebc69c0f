// The data of the page: columns of numbers and lists of names, as Python left them, and what follows from them.

const KINDS = ["callable", "native", "compute", "copy", "async", "launch", "wait", "delete", "landing"];
const OUTCOMES = ["pending", "done", "failed", "skipped", "cancelled"];
const VERBS = ["reads", "mutates", "overwrites"];
const FAILED = 2;
const WAIT = 6;
const NONE = 65535;

async function loadTrace() {
  const about = JSON.parse(document.getElementById("trace").textContent);
  const text = atob(document.getElementById("columns").textContent);
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  const types = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array, f8: Float64Array };
  const columns = {};
  for (const { name, type, offset, length } of about.columns) columns[name] = new types[type](bytes, offset, length);
  return new Trace(about, columns);
}

// The first position from `low` on, below `high`, whose value in the sorted `values` is greater than `key`.
function upperBound(values, key, low, high) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > key) high = middle;
    else low = middle + 1;
  }
  return low;
}

class Trace {
  constructor(about, columns) {
    Object.assign(this, about);
    this.columns = columns;
    this.count = columns.name.length;
    const spans = columns.spanOp.length;
    this.spanOf = new Int32Array(this.count).fill(-1);
    for (let at = 0; at < spans; at++) this.spanOf[columns.spanOp[at]] = at;
    this.critical = new Uint8Array(this.count);
    for (const op of columns.path) this.critical[op] = 1;
    this.bands = this.#bands();
    // Sums up to each span, so that a thousand spans within a pixel cost as much as one.
    this.busySum = new Float64Array(spans + 1);
    this.criticalSum = new Uint32Array(spans + 1);
    this.failedSum = new Uint32Array(spans + 1);
    for (let at = 0; at < spans; at++) {
      const op = columns.spanOp[at];
      this.busySum[at + 1] = this.busySum[at] + columns.spanEnd[at] - columns.spanStart[at];
      this.criticalSum[at + 1] = this.criticalSum[at] + this.critical[op];
      this.failedSum[at + 1] = this.failedSum[at] + (columns.outcome[op] === FAILED);
    }
    this.before = lists(columns.after, columns.before, this.count);
    this.after = lists(columns.before, columns.after, this.count);
    const rows = Uint32Array.from(columns.accessOp, (_, at) => at);
    this.accesses = lists(columns.accessOp, rows, this.count);
  }

  // One entry for each row of each lane: the range of its spans.
  #bands() {
    const { spanLane, spanRow } = this.columns;
    const bands = [];
    let from = 0;
    this.lanes.forEach((lane, index) => {
      for (let row = 0; row < lane.depth; row++) {
        let to = from;
        while (to < spanLane.length && spanLane[to] === index && spanRow[to] === row) to++;
        bands.push({ lane: index, row, from, to });
        from = to;
      }
    });
    return bands;
  }

  label(op) {
    return this.names[this.columns.name[op]] || `op ${op}`;
  }

  kind(op) {
    return KINDS[this.columns.kind[op]];
  }

  duration(op) {
    const { started, ended } = this.columns;
    return ended[op] - started[op];
  }

  thread(op) {
    const { worker, pusher } = this.columns;
    return this.threads[worker[op] === NONE ? pusher[op] : worker[op]] ?? "";
  }

  accessText(access) {
    const { accessKind, accessVariable, accessVersion } = this.columns;
    return `${VERBS[accessKind[access]]} ${this.variables[accessVariable[access]]} v${accessVersion[access]}`;
  }
}

// For each of `count` keys the values that belong to it: a function from a key to a slice of one array.
function lists(keys, values, count) {
  const ends = new Uint32Array(count + 1);
  for (const key of keys) ends[key + 1]++;
  for (let key = 0; key < count; key++) ends[key + 1] += ends[key];
  const next = ends.slice(0, count);
  const sorted = new Uint32Array(values.length);
  for (let at = 0; at < keys.length; at++) sorted[next[keys[at]]++] = values[at];
  return (key) => sorted.subarray(ends[key], ends[key + 1]);
}
