// Draws the lanes. What is narrower than a pixel is drawn together, as dense as it is busy.

const NARROW = 1.5;

class LanesPainter {
  constructor(layout, state) {
    Object.assign(this, { layout, state, trace: layout.trace, viewport: layout.viewport });
  }

  // What lies under the ops: a ground for each row, and the names of the lanes.
  ground() {
    const { pen, colours, row } = this.layout;
    this.#clipped(0, () => {
      pen.textBaseline = "middle";
      pen.textAlign = "right";
      pen.font = "12px system-ui, 'Liberation Sans', sans-serif";
      for (const [band, y] of this.#visible()) {
        pen.fillStyle = colours.band;
        pen.fillRect(this.viewport.left, y, this.viewport.width, row - 1);
        if (band.row > 0) continue;
        pen.fillStyle = colours.ink;
        const label = this.layout.clipped(this.trace.lanes[band.lane].label, this.viewport.left - 14);
        pen.fillText(label, this.viewport.left - 9, y + row / 2);
      }
    });
  }

  draw() {
    this.#clipped(this.viewport.left, () => {
      this.layout.pen.textBaseline = "middle";
      for (const [band, y] of this.#visible()) this.#spans(band, y);
    });
  }

  #clipped(left, paint) {
    const { pen, top, bottom, width } = this.layout;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width - left, bottom - top);
    pen.clip();
    paint();
    pen.restore();
  }

  *#visible() {
    for (const band of this.trace.bands) {
      const y = this.layout.y(band);
      if (y + this.layout.row >= this.layout.top && y <= this.layout.bottom) yield [band, y];
    }
  }

  #spans(band, y) {
    const { spanStart, spanEnd } = this.trace.columns;
    const { start, end } = this.viewport;
    let at = upperBound(spanEnd, start, band.from, band.to);
    while (at < band.to && spanStart[at] < end) {
      const [from, to] = [this.viewport.x(spanStart[at]), this.viewport.x(spanEnd[at])];
      if (to - from >= NARROW) {
        this.#wide(at, from, to, y);
        at++;
        continue;
      }
      // All that begin in this pixel and end before the next one is over.
      const pixel = Math.floor(from);
      let next = upperBound(spanEnd, this.viewport.time(pixel + 1), at, band.to);
      if (next === at) next++;
      this.#narrow(at, next, pixel, y);
      at = next;
    }
  }

  #faded(op) {
    const { hits, hidden } = this.state;
    return hidden.has(this.trace.kind(op)) || (hits.active && !hits.has(op));
  }

  #wide(at, from, to, y) {
    const { pen, colours, hatch, row } = this.layout;
    const op = this.trace.columns.spanOp[at];
    const colour = this.layout.fill(op);
    // A little beyond what is seen, so that no edge shows where the op goes on.
    const [left, right] = [Math.max(from, this.viewport.left - 4), Math.min(to, this.layout.width + 4)];
    const margin = Math.max(left, this.viewport.left) + 5;
    const size = right - left - (to - from > 4 ? 1 : 0); // an edge between neighbours
    const wait = this.trace.columns.kind[op] === WAIT;
    pen.globalAlpha = this.#faded(op) ? 0.16 : 1;
    pen.fillStyle = wait ? hatch : colour;
    pen.fillRect(left, y, size, row - 1);
    if (this.trace.columns.outcome[op] === FAILED) this.#cross(left, size, y, wait);
    if (this.state.hits.active && this.state.hits.has(op)) this.#outline(left, size, y, colours.match, 2);
    if (this.state.critical && this.trace.critical[op]) {
      this.#outline(left, size, y, colours.mark, 1.5);
      pen.fillStyle = colours.mark;
      pen.fillRect(left, y, size, 3);
    }
    if (this.trace.marks[op]) this.#outline(left, size, y, this.trace.palette.failed[0], 2);
    if (op === this.state.selected) this.#outline(left, size, y, colours.accent, 3);
    if (size > 24 && row >= 12) {
      pen.font = `${row > 15 ? 12 : 10}px system-ui, 'Liberation Sans', sans-serif`;
      pen.textAlign = "left";
      pen.fillStyle = wait ? colours.ink : this.layout.inkOn(colour);
      // A wait's hatch is no ground for letters: they get one of their own.
      const text = this.layout.clipped(this.trace.label(op), right - margin - 4);
      if (wait && text) {
        pen.fillStyle = colours.band;
        pen.fillRect(margin - 3, y + 2, this.layout.widths.get(this.trace.label(op)) + 6, row - 5);
        pen.fillStyle = colours.ink;
      }
      pen.fillText(text, margin, y + row / 2 + 0.5);
    }
    pen.globalAlpha = 1;
  }

  #narrow(from, to, pixel, y) {
    const { pen, colours, row } = this.layout;
    const { spanOp } = this.trace.columns;
    const { hits, critical, selected } = this.state;
    const sums = this.trace;
    const op = spanOp[(from + to) >>> 1];
    const time = this.viewport.range / this.viewport.width;
    const busy = Math.min(1, (sums.busySum[to] - sums.busySum[from]) / time);
    const found = hits.active && hits.sum[to] > hits.sum[from];
    const faded = hits.active ? !found : this.state.hidden.has(this.trace.kind(op));
    pen.globalAlpha = (0.35 + 0.65 * busy) * (faded ? 0.16 : 1);
    pen.fillStyle = this.layout.fill(op);
    pen.fillRect(pixel, y, 1, row - 1);
    pen.globalAlpha = 1;
    if (found) this.#tick(pixel, y, colours.match, row - 1, hits.sum[to] - hits.sum[from] < to - from ? 0.5 : 1);
    if (sums.failedSum[to] > sums.failedSum[from]) this.#tick(pixel, y + row - 6, this.trace.palette.failed[0], 5, 1);
    if (critical && sums.criticalSum[to] > sums.criticalSum[from]) this.#tick(pixel, y, colours.mark, 3, 1);
    if (selected >= 0 && this.trace.spanOf[selected] >= from && this.trace.spanOf[selected] < to) {
      this.#tick(pixel - 1, y - 2, colours.accent, row + 3, 1, 3);
    }
  }

  #tick(x, y, colour, height, alpha, width = 1) {
    const { pen } = this.layout;
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    pen.fillRect(x, y, width, height);
    pen.globalAlpha = 1;
  }

  #outline(left, size, y, colour, line) {
    const { pen, row } = this.layout;
    pen.strokeStyle = colour;
    pen.lineWidth = line;
    pen.strokeRect(left + line / 2, y + line / 2, Math.max(0, size - line), row - 1 - line);
  }

  // A failed op: crossed out, so that no colour has to say it.
  #cross(left, size, y, wait) {
    const { pen, row } = this.layout;
    pen.fillStyle = this.trace.palette.failed[0];
    if (!wait) pen.fillRect(left, y + row - 6, size, 5);
    if (size < row) return;
    pen.strokeStyle = this.trace.palette.failed[0];
    pen.lineWidth = 2.5;
    const middle = left + size - row / 2;
    pen.beginPath();
    pen.moveTo(middle - 5, y + 3);
    pen.lineTo(middle + 5, y + row - 7);
    pen.moveTo(middle + 5, y + 3);
    pen.lineTo(middle - 5, y + row - 7);
    pen.stroke();
  }
}
