// Puts the page together: what the mouse, the keys and the buttons do.

const trace = await loadTrace();
const canvas = document.getElementById("timeline");
const field = document.querySelector("#search input");
const viewport = new Viewport(trace.from, trace.to);
const layout = new Layout(trace, canvas, viewport);
const state = { selected: -1, critical: true, hidden: new Set(), hits: new Hits(trace), stretch: undefined };
const [lanes, scale, arrows] = [LanesPainter, ScalePainter, ArrowPainter].map((Painter) => new Painter(layout, state));
const details = new Details(layout, choose);
const root = document.documentElement;

let frame = 0;
function redraw() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    layout.pen.fillStyle = layout.colours.ground;
    layout.pen.fillRect(0, 0, layout.width, layout.height);
    lanes.ground();
    scale.draw(); // its grid lies between the ground and the ops
    lanes.draw();
    arrows.draw();
    scale.stretch();
  });
}

function choose(op, reveal = false) {
  state.selected = op;
  details.show(op);
  layout.resize(); // the panel takes room
  if (op >= 0 && reveal) show(op);
  redraw();
}

function show(op) {
  const span = trace.spanOf[op];
  if (span < 0) return;
  viewport.reveal(trace.columns.spanStart[span], trace.columns.spanEnd[span]);
  layout.reveal(span);
}

// The op at a place on the canvas, or the nearest one within a few pixels.
function opAt(x, y) {
  const band = layout.bandAt(y);
  if (!band || x < viewport.left || band.from === band.to) return -1;
  const { spanStart, spanEnd, spanOp } = trace.columns;
  const time = viewport.time(x);
  const near = (3 * viewport.range) / viewport.width;
  const at = Math.min(upperBound(spanEnd, time, band.from, band.to), band.to - 1);
  const distance = (span) => (span < band.from ? Infinity : Math.max(spanStart[span] - time, time - spanEnd[span], 0));
  const nearest = distance(at) <= distance(at - 1) ? at : at - 1;
  return distance(nearest) <= near ? spanOp[nearest] : -1;
}

function search() {
  state.hits.find(field.value);
  count();
  redraw();
}

function count() {
  const { active, found, current } = state.hits;
  const total = formatCount(found.length);
  document.querySelector("#search output").textContent = !active ? "" : current < 0 ? `${total} found` : `${formatCount(current + 1)} of ${total}`;
}

function step(by) {
  const op = state.hits.step(by);
  if (op < 0) return;
  count();
  choose(op, true);
}

function along(by) {
  const { path } = trace.columns;
  if (!path.length) return;
  const at = path.indexOf(state.selected);
  choose(path[at < 0 ? 0 : Math.min(path.length - 1, Math.max(0, at + by))], true);
}

function press(button, value) {
  button.setAttribute("aria-pressed", String(value));
}

function toggleCritical() {
  state.critical = !state.critical;
  press(document.getElementById("critical"), state.critical);
  redraw();
}

function setTheme(theme) {
  root.dataset.theme = theme;
  layout.recolour();
  redraw();
}

function toggleKeys(shown = document.getElementById("keys").hidden) {
  document.getElementById("keys").hidden = !shown;
  document.getElementById("help").setAttribute("aria-expanded", String(shown));
}

function fit() {
  viewport.fit();
  redraw();
}

// The mouse. A drag moves what is seen; over the overview it moves the window, over the scale or with Shift it measures.
let drag;

function place(event) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function jump(x) {
  const { whole, range, left, width } = viewport;
  const middle = whole.start + ((x - left) / width) * (whole.end - whole.start);
  viewport.show(middle - range / 2, middle + range / 2);
}

canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  const { x, y } = place(event);
  canvas.setPointerCapture(event.pointerId);
  canvas.focus({ preventScroll: true });
  const what = y < OVERVIEW ? "window" : event.shiftKey || y < OVERVIEW + SCALE ? "stretch" : "view";
  drag = { what, x, y, moved: false };
  if (what === "window") jump(x);
  redraw();
});

canvas.addEventListener("pointermove", (event) => {
  const { x, y } = place(event);
  if (!drag) {
    const op = opAt(x, y);
    details.hover(op, x, y);
    canvas.style.cursor = op >= 0 ? "pointer" : y < OVERVIEW + SCALE ? "col-resize" : "grab";
    return;
  }
  drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 3;
  if (!drag.moved) return;
  details.hover(-1);
  if (drag.what === "window") jump(x);
  else if (drag.what === "stretch") state.stretch = [viewport.time(drag.from ??= drag.x), viewport.time(x)];
  else {
    viewport.pan(drag.x - x);
    layout.scroll(drag.y - y);
    [drag.x, drag.y] = [x, y];
  }
  redraw();
});

canvas.addEventListener("pointerup", (event) => {
  const { x, y } = place(event);
  if (drag && !drag.moved && drag.what === "view") choose(opAt(x, y));
  if (state.stretch) viewport.show(Math.min(...state.stretch), Math.max(...state.stretch));
  drag = state.stretch = undefined;
  redraw();
});

canvas.addEventListener("pointercancel", () => {
  drag = state.stretch = undefined;
  redraw();
});

canvas.addEventListener("pointerleave", () => details.hover(-1));

canvas.addEventListener("dblclick", (event) => {
  const { x, y } = place(event);
  const op = opAt(x, y);
  if (op < 0) return fit();
  const span = trace.spanOf[op];
  const [start, end] = [trace.columns.spanStart[span], trace.columns.spanEnd[span]];
  viewport.show(start - (end - start) / 2, end + (end - start) / 2);
  redraw();
});

canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const { x } = place(event);
    const scale = event.deltaMode === 1 ? 16 : 1;
    const [dx, dy] = [event.deltaX * scale, event.deltaY * scale];
    if (x < viewport.left) layout.scroll(dy);
    else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) viewport.pan(dx || dy);
    else viewport.zoom(2 ** (Math.max(-200, Math.min(200, dy)) / (event.ctrlKey ? 60 : 180)), x);
    details.hover(-1);
    redraw();
  },
  { passive: false },
);

const KEYS = {
  w: () => viewport.zoom(0.7), s: () => viewport.zoom(1 / 0.7), "+": () => viewport.zoom(0.7), "=": () => viewport.zoom(0.7), "-": () => viewport.zoom(1 / 0.7),
  a: () => viewport.pan(-0.15 * viewport.width), d: () => viewport.pan(0.15 * viewport.width),
  ArrowLeft: () => viewport.pan(-0.15 * viewport.width), ArrowRight: () => viewport.pan(0.15 * viewport.width),
  ArrowUp: () => layout.scroll(-40), ArrowDown: () => layout.scroll(40),
  f: fit, c: toggleCritical, n: () => step(1), N: () => step(-1), "[": () => along(-1), "]": () => along(1),
  t: () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"),
  "/": () => field.select(), "?": () => toggleKeys(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    toggleKeys(false);
    choose(-1);
    field.blur();
    return;
  }
  const action = KEYS[event.key];
  if (!action || event.target === field || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
  redraw();
});

field.addEventListener("input", search);
document.getElementById("search").addEventListener("submit", (event) => event.preventDefault());
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
});
for (const button of document.querySelectorAll("#search button")) button.onclick = () => step(Number(button.dataset.step));
document.getElementById("fit").onclick = fit;
document.getElementById("critical").onclick = toggleCritical;
document.getElementById("theme").onclick = KEYS.t;
document.getElementById("help").onclick = () => toggleKeys();

document.getElementById("figures").append(
  ...trace.figures.map(([name, value]) => element("div", [element("dt", name), element("dd", value)])),
);
document.getElementById("legend").append(
  ...trace.legend.map(([kind, count, time]) => {
    const colour = element("i", []);
    colour.style.background =
      kind === "wait" ? `repeating-linear-gradient(135deg, ${trace.palette.wait[0]} 0 1.5px, transparent 1.5px 4px)` : trace.palette[kind][0];
    const button = element("button", [colour, kind, element("span", `${formatCount(count)}, ${formatTime(time)}`)], { type: "button", title: `show or fade: ${kind}` });
    button.onclick = () => {
      if (!state.hidden.delete(kind)) state.hidden.add(kind);
      press(button, !state.hidden.has(kind));
      redraw();
    };
    press(button, true);
    return button;
  }),
);

new ResizeObserver(() => {
  layout.resize();
  redraw();
}).observe(canvas);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
setTheme(dark.matches ? "dark" : "light");
layout.resize();
redraw();
// For scripts that drive the page.
window.weft = { trace, viewport, layout, state, choose, redraw };
root.dataset.ready = "true";
