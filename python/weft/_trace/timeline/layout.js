// Where everything lies on the canvas, and its colours.

const OVERVIEW = 36;
const SCALE = 24;
const GAP = 7; // between lanes
const ROW = { least: 12, most: 40 };
const LEVEL = { least: 46, most: 100 }; // height of each curve below the lanes

class Layout {
  constructor(trace, canvas, viewport) {
    Object.assign(this, { trace, canvas, viewport });
    this.pen = canvas.getContext("2d");
    this.widths = new Map();
    this.recolour();
  }

  resize() {
    const { width, height } = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    [this.width, this.height] = [width, height];
    const { lanes, bands, levels } = this.trace;
    this.pen.font = "12px system-ui, 'Liberation Sans', sans-serif";
    const labels = [...lanes, ...levels].map(({ label }) => this.pen.measureText(label).width);
    this.viewport.left = Math.min(Math.max(60, ...labels) + 22, width / 3);
    this.viewport.width = Math.max(1, width - this.viewport.left - 8);
    this.top = OVERVIEW + SCALE;
    const room = height - this.top - levels.length * LEVEL.least - GAP * (lanes.length + 1);
    this.row = Math.floor(Math.min(ROW.most, Math.max(ROW.least, room / Math.max(1, bands.length))));
    let y = GAP;
    let lane = 0;
    for (const band of bands) {
      if (band.lane !== lane) [lane, y] = [band.lane, y + GAP];
      band.y = y;
      y += this.row;
    }
    this.content = y + GAP;
    this.bottom = Math.max(this.top + 40, Math.min(this.top + this.content, height - levels.length * LEVEL.least));
    this.level = Math.min(LEVEL.most, (height - this.bottom) / levels.length);
    this.scroll(0);
  }

  scroll(pixels) {
    const most = Math.max(0, this.content - (this.bottom - this.top));
    this.viewport.scroll = Math.min(most, Math.max(0, this.viewport.scroll + pixels));
  }

  y(band) {
    return this.top + band.y - this.viewport.scroll;
  }

  bandAt(y) {
    if (y < this.top || y >= this.bottom) return undefined;
    return this.trace.bands.find((band) => y >= this.y(band) && y < this.y(band) + this.row);
  }

  bandOf(span) {
    return this.trace.bands.find((band) => span >= band.from && span < band.to);
  }

  // Scrolls so that a span's row is seen.
  reveal(span) {
    const y = this.y(this.bandOf(span));
    if (y < this.top) this.scroll(y - this.top - GAP);
    if (y + this.row > this.bottom) this.scroll(y + this.row - this.bottom + GAP);
  }

  recolour() {
    const style = getComputedStyle(document.documentElement);
    const names = ["ground", "band", "line", "ink", "faint", "mark", "match", "level", "accent"];
    this.colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.strokeStyle = this.trace.palette.wait[0];
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift, 6);
      pen.lineTo(shift + 6, 0);
    }
    pen.stroke();
    this.hatch = this.pen.createPattern(tile, "repeat");
  }

  fill(op) {
    const shades = this.trace.palette[this.trace.kind(op)];
    return shades[this.trace.shades[this.trace.columns.name[op]] % shades.length];
  }

  // Black or white, whichever is read better on `colour`.
  inkOn(colour) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? "#111111" : "#ffffff";
  }

  // As much of a text as fits, or nothing.
  clipped(text, room) {
    if (!this.widths.has(text)) this.widths.set(text, this.pen.measureText(text).width);
    const width = this.widths.get(text);
    if (width <= room) return text;
    const letters = Math.floor((room / width) * text.length) - 2;
    return letters >= 2 ? `${text.slice(0, letters)}\u2026` : "";
  }
}
