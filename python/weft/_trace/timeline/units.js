// Numbers as people read them.

const UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];

function unitOf(time) {
  return UNITS.findLast(([, size]) => Math.abs(time) >= size) ?? UNITS[0];
}

function formatTime(time) {
  if (!time) return "0 s";
  const [unit, size] = unitOf(time);
  const value = time / size;
  return `${value >= 100 ? value.toFixed(unit === "ns" ? 0 : 1) : Number(value.toPrecision(3))} ${unit}`;
}

function formatBytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (count >= 1000 && at < units.length - 1) [count, at] = [count / 1000, at + 1];
  return `${Number(count.toPrecision(3))} ${units[at]}`;
}

function formatCount(count) {
  return count.toLocaleString("en-US");
}

// Steps of 1, 2 or 5 times a power of ten, at least `least` apart.
function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least));
}

// A point of the scale: in the unit of the whole view, with as many digits as the steps need.
function formatTick(time, step, range) {
  const [unit, size] = unitOf(range);
  const digits = Math.max(0, Math.round(Math.log10(size) - Math.floor(Math.log10(step) + 1e-9)));
  return `${(time / size).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
}
