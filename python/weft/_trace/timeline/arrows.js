// Draws what leads to the chosen op: its dependencies, from the end of one op to the start of the other, and the time that
// it was pending (dashed) and in the queue (a line).

const ARROWS = 200; // of one op, in each direction: more would hide each other

class ArrowPainter {
  constructor(layout, state) {
    Object.assign(this, { layout, state, trace: layout.trace, viewport: layout.viewport });
  }

  draw() {
    const { selected } = this.state;
    if (selected < 0) return;
    const { pen, top, bottom, width } = this.layout;
    pen.save();
    pen.beginPath();
    pen.rect(this.viewport.left, top, width - this.viewport.left, bottom - top);
    pen.clip();
    this.#waiting(selected);
    for (const op of this.trace.before(selected).subarray(0, ARROWS)) this.#arrow(op, selected);
    for (const op of this.trace.after(selected).subarray(0, ARROWS)) this.#arrow(selected, op);
    pen.restore();
  }

  #waiting(op) {
    const { pen, colours, row } = this.layout;
    const { pushed, ready, started, kind } = this.trace.columns;
    if (kind[op] === WAIT || this.trace.spanOf[op] < 0) return;
    const y = this.layout.y(this.layout.bandOf(this.trace.spanOf[op])) + row - 3;
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 3;
    for (const [from, to, dash] of [[pushed[op], ready[op], [2, 4]], [ready[op], started[op], []]]) {
      pen.setLineDash(dash);
      pen.beginPath();
      pen.moveTo(this.viewport.x(from), y);
      pen.lineTo(this.viewport.x(to), y);
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  #arrow(before, after) {
    const { pen, colours, row } = this.layout;
    const { spanStart, spanEnd } = this.trace.columns;
    const [source, target] = [this.trace.spanOf[before], this.trace.spanOf[after]];
    if (source < 0 || target < 0) return;
    const place = (span) => this.layout.y(this.layout.bandOf(span)) + row / 2;
    // A wait began before what it waits for was over: the arrow leads to its end.
    const arrival = this.trace.columns.kind[after] === WAIT ? spanEnd[target] : spanStart[target];
    const [x0, y0, x1, y1] = [this.viewport.x(spanEnd[source]), place(source), this.viewport.x(arrival), place(target)];
    const bend = Math.max(14, Math.min(80, Math.abs(x1 - x0) / 2));
    const lift = y0 === y1 ? row : 0; // over the ops between the two
    pen.strokeStyle = pen.fillStyle = colours.mark;
    pen.lineWidth = 1.6;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0 + bend, y0 - lift, x1 - bend, y1 - lift, x1 - 5, y1);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x1 - 7, y1 - 4);
    pen.lineTo(x1 - 7, y1 + 4);
    pen.fill();
  }
}
