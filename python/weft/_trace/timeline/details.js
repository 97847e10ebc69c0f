// What is known of an op, in words: the tooltip, and the panel of the chosen one.

const LISTED = 12; // accesses and neighbours

function element(tag, content, attributes = {}) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...[content].flat());
  return made;
}

class Details {
  constructor(layout, choose) {
    Object.assign(this, { layout, choose, trace: layout.trace });
    this.tooltip = document.getElementById("tooltip");
    this.panel = document.getElementById("details");
  }

  facts(op) {
    const { columns, places, errors, marks } = this.trace;
    const facts = [];
    const add = (name, value) => value && facts.push([name, value]);
    add(columns.kind[op] === WAIT ? "called at" : "pushed at", places[columns.place[op]]);
    if (columns.kind[op] === WAIT) {
      add("waited", formatTime(this.trace.duration(op)));
      add("from", `${formatTime(columns.started[op])} to ${formatTime(columns.ended[op])}`);
      add("thread", this.trace.thread(op));
    } else {
      add("ran", `${formatTime(this.trace.duration(op))} on ${this.trace.thread(op)}`);
      add("from", `${formatTime(columns.started[op])} to ${formatTime(columns.ended[op])}`);
      if (columns.deviceEnded[op]) {
        add("on its device", `${formatTime(columns.deviceEnded[op] - columns.deviceStarted[op])} on ${this.trace.streams[columns.stream[op]] || `stream ${columns.stream[op]}`}`);
        if (columns.moved[op]) add("moved", formatBytes(columns.moved[op]));
      }
      add("queued", `${formatTime(Math.max(0, columns.started[op] - columns.ready[op]))} for a worker`);
      add("pending", `${formatTime(Math.max(0, columns.ready[op] - columns.pushed[op]))} for other ops`);
    }
    if (columns.priority[op]) add("priority", String(columns.priority[op]));
    if (columns.bytes[op]) add("bytes held", formatBytes(columns.bytes[op]));
    const accesses = this.trace.accesses(op);
    const texts = [...accesses.subarray(0, LISTED)].map((access) => this.trace.accessText(access));
    if (accesses.length > LISTED) texts.push(`${formatCount(accesses.length - LISTED)} more`);
    add("accesses", texts.join(", "));
    if (this.trace.critical[op]) add("critical", "on the critical path");
    if (columns.outcome[op] !== 1) add("outcome", OUTCOMES[columns.outcome[op]] + (errors[op] ? `: ${errors[op]}` : ""));
    add("doctor", marks[op]);
    return facts;
  }

  #title(op) {
    const colour = element("span", [], { className: "op-kind" });
    colour.style.background = this.layout.fill(op);
    return element("div", [colour, element("span", this.trace.label(op), { className: "op-name" }), ` ${this.trace.kind(op)}`]);
  }

  #list(op) {
    const items = this.facts(op).flatMap(([name, value]) => [
      element("dt", name),
      element("dd", value, { className: name === "outcome" ? "failure" : "" }),
    ]);
    return element("dl", items, { className: "facts" });
  }

  hover(op, x, y) {
    this.tooltip.hidden = op < 0;
    if (op < 0) return;
    this.tooltip.replaceChildren(this.#title(op), this.#list(op));
    const { offsetWidth, offsetHeight } = this.tooltip;
    const { width, height } = this.layout;
    this.tooltip.style.left = `${Math.max(4, x + 16 + offsetWidth > width ? x - offsetWidth - 12 : x + 16)}px`;
    this.tooltip.style.top = `${Math.max(4, y + 18 + offsetHeight > height ? y - offsetHeight - 10 : y + 18)}px`;
  }

  show(op) {
    this.panel.hidden = op < 0;
    if (op < 0) return;
    const close = element("button", "\u00d7", { className: "close", type: "button", title: "close (Esc)", onclick: () => this.choose(-1) });
    close.setAttribute("aria-label", "close");
    const columns = element("div", [element("div", [this.#title(op), this.#list(op)])], { className: "columns" });
    for (const [title, ops] of [["waited for", this.trace.before(op)], ["waited for by", this.trace.after(op)]]) {
      if (ops.length) columns.append(this.#neighbours(title, ops));
    }
    this.panel.replaceChildren(close, columns);
  }

  #neighbours(title, ops) {
    const items = [...ops.subarray(0, LISTED)].map((op) => {
      const ran = this.trace.spanOf[op] >= 0;
      const text = `${this.trace.label(op)} ${ran ? formatTime(this.trace.duration(op)) : OUTCOMES[this.trace.columns.outcome[op]]}`;
      return element("li", element("button", text, { type: "button", disabled: !ran, onclick: () => this.choose(op, true) }));
    });
    const more = ops.length > LISTED ? [element("li", `and ${formatCount(ops.length - LISTED)} more`)] : [];
    return element("div", [element("h2", title), element("ul", [...items, ...more])]);
  }
}
