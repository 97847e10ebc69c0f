// Which stretch of time is seen, and how far the lanes are scrolled.

const MARGIN = 0.005; // of the run, left and right of it
const CLOSEST = 20; // ns over the whole width

class Viewport {
  constructor(from, to) {
    const margin = Math.max(1, (to - from) * MARGIN);
    this.whole = { start: from - margin, end: to + margin };
    this.left = 0; // of the lanes, in pixels
    this.width = 1;
    this.scroll = 0;
    this.fit();
  }

  get range() {
    return this.end - this.start;
  }

  x(time) {
    return this.left + ((time - this.start) / this.range) * this.width;
  }

  time(x) {
    return this.start + ((x - this.left) / this.width) * this.range;
  }

  fit() {
    this.show(this.whole.start, this.whole.end);
  }

  // Shows a stretch of time, or as much of it as there is.
  show(start, end) {
    const whole = this.whole.end - this.whole.start;
    const range = Math.min(whole, Math.max(CLOSEST, end - start));
    const middle = (start + end) / 2;
    this.start = Math.min(Math.max(middle - range / 2, this.whole.start), this.whole.end - range);
    this.end = this.start + range;
  }

  // Zooms such that what lies at `x` stays there.
  zoom(factor, x = this.left + this.width / 2) {
    const whole = this.whole.end - this.whole.start;
    const range = Math.min(whole, Math.max(CLOSEST, this.range * factor));
    const at = this.time(x);
    const start = at - ((x - this.left) / this.width) * range;
    this.show(start, start + range);
  }

  pan(pixels) {
    const shift = (pixels / this.width) * this.range;
    this.show(this.start + shift, this.end + shift);
  }

  // Brings a stretch of time into sight; zooms out if it must, and in if it would be too small to see.
  reveal(start, end) {
    const size = end - start;
    if (start < this.start || end > this.end || size < this.range / 400) {
      const range = Math.max(size * 6, Math.min(this.range, Math.max(size * 200, CLOSEST)));
      const middle = (start + end) / 2;
      this.show(middle - range / 2, middle + range / 2);
    }
  }
}
