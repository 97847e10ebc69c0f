// Draws what surrounds the lanes: the overview above, the scale of time, and the curves below.

class ScalePainter {
  constructor(layout, state) {
    Object.assign(this, { layout, state, trace: layout.trace, viewport: layout.viewport });
  }

  draw() {
    this.layout.pen.font = "11px system-ui, 'Liberation Sans', sans-serif";
    this.#overview();
    this.#ticks();
    this.trace.levels.forEach((level, at) => this.#curve(level, this.layout.bottom + at * this.layout.level));
  }

  // The whole run, and the part of it that is seen.
  #overview() {
    const { pen, colours } = this.layout;
    const { left, width, whole, start, end } = this.viewport;
    const x = (time) => left + ((time - whole.start) / (whole.end - whole.start)) * width;
    pen.fillStyle = colours.band;
    pen.fillRect(left, 4, width, OVERVIEW - 8);
    this.#area(this.trace.levels[0], x, 4, OVERVIEW - 8, whole.start, whole.end);
    pen.fillStyle = colours.ground;
    pen.globalAlpha = 0.7;
    pen.fillRect(left, 4, x(start) - left, OVERVIEW - 8);
    pen.fillRect(x(end), 4, left + width - x(end), OVERVIEW - 8);
    pen.globalAlpha = 1;
    pen.strokeStyle = colours.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x(start) + 1, 5, Math.max(2, x(end) - x(start) - 2), OVERVIEW - 10);
    pen.fillStyle = colours.faint;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText("overview", left - 9, OVERVIEW / 2);
  }

  #ticks() {
    const { pen, colours, bottom } = this.layout;
    const { left, width, start, end, range } = this.viewport;
    let step = tickStep((range * 70) / width);
    const longest = Math.max(...[start, end].map((time) => pen.measureText(formatTick(time, step, range)).width));
    step = tickStep((range * (longest + 26)) / width);
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) {
      const x = Math.round(this.viewport.x(tick)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, OVERVIEW + SCALE - 5);
      pen.lineTo(x, bottom);
      pen.stroke();
      const label = formatTick(tick, step, range);
      const half = pen.measureText(label).width / 2;
      if (tick < 0 || x - half < left - 4 || x + half > left + width + 6) continue;
      pen.fillStyle = colours.faint;
      pen.fillText(label, x, OVERVIEW + SCALE / 2 - 1);
    }
  }

  #curve(level, top) {
    const { pen, colours, level: height } = this.layout;
    const { left, width, start, end } = this.viewport;
    pen.fillStyle = colours.band;
    pen.fillRect(left, top + 5, width, height - 8);
    this.#area(level, (time) => this.viewport.x(time), top + 5, height - 8, start, end);
    pen.fillStyle = colours.ink;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.font = "12px system-ui, 'Liberation Sans', sans-serif";
    pen.fillText(this.layout.clipped(level.label, left - 14), left - 9, top + height / 2 - 6);
    pen.font = "11px system-ui, 'Liberation Sans', sans-serif";
    pen.fillStyle = colours.faint;
    const most = level.name === "bytes" ? formatBytes(level.most) : formatCount(level.most);
    pen.fillText(`at most ${most}`, left - 9, top + height / 2 + 9);
  }

  // The steps of a level over time, filled; within a pixel the highest counts.
  #area(level, x, top, height, start, end) {
    const { pen, colours, viewport } = this.layout;
    const times = this.trace.columns[`${level.name}Time`];
    const values = this.trace.columns[`${level.name}Level`];
    if (!times.length || !level.most) return;
    const y = (value) => top + height - (value / level.most) * (height - 2);
    pen.save();
    pen.beginPath();
    pen.rect(viewport.left, top, viewport.width, height);
    pen.clip();
    pen.beginPath();
    let at = Math.max(0, upperBound(times, start, 0, times.length) - 1);
    let value = times[at] <= start ? values[at] : 0;
    pen.moveTo(viewport.left, top + height);
    pen.lineTo(viewport.left, y(value));
    while (at < times.length && times[at] <= end) {
      const pixel = Math.floor(x(times[at]));
      pen.lineTo(pixel, y(value));
      let highest = value;
      for (; at < times.length && Math.floor(x(times[at])) === pixel; at++) {
        value = values[at];
        highest = Math.max(highest, value);
      }
      pen.lineTo(pixel, y(highest));
      pen.lineTo(pixel + 1, y(highest));
      pen.lineTo(pixel + 1, y(value));
    }
    pen.lineTo(viewport.left + viewport.width, y(value));
    pen.lineTo(viewport.left + viewport.width, top + height);
    pen.closePath();
    pen.fillStyle = colours.level;
    pen.globalAlpha = 0.75;
    pen.fill();
    pen.restore();
  }

  // The stretch that is being measured.
  stretch() {
    const { pen, colours, bottom } = this.layout;
    const { stretch } = this.state;
    if (!stretch) return;
    const [from, to] = [Math.min(...stretch), Math.max(...stretch)];
    const [left, right] = [this.viewport.x(from), this.viewport.x(to)];
    pen.fillStyle = colours.accent;
    pen.globalAlpha = 0.18;
    pen.fillRect(left, OVERVIEW, right - left, bottom - OVERVIEW);
    pen.globalAlpha = 1;
    pen.font = "600 12px system-ui, 'Liberation Sans', sans-serif";
    const label = formatTime(to - from);
    const half = pen.measureText(label).width / 2 + 6;
    const middle = Math.min(Math.max((left + right) / 2, this.viewport.left + half), this.layout.width - half);
    pen.fillRect(middle - half, OVERVIEW + 2, 2 * half, SCALE - 6);
    pen.fillStyle = colours.ground;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(label, middle, OVERVIEW + SCALE / 2 - 1);
  }
}
