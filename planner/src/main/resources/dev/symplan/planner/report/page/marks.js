/* What is selected, what it is connected to and where the pointer is, drawn into a map's upper canvas. */

class Marks {
  #map;
  #context;

  constructor(map, context) {
    this.#map = map;
    this.#context = context;
  }

  paint() {
    const context = this.#context;
    const {ink} = this.#map.page.colours;
    context.clearRect(0, 0, this.#map.width, this.#map.height);
    const {selected, hovered} = this.#map.page;
    if (this.#map.pointer && this.#map.pointer[0] >= GUTTER && this.#map.pointer[0] <= this.#map.width - RIGHT) {
      context.strokeStyle = ink;
      context.globalAlpha = 0.25;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(Math.round(this.#map.pointer[0]) + 0.5, OVERVIEW);
      context.lineTo(Math.round(this.#map.pointer[0]) + 0.5, this.#map.streamsTop + this.#map.graph.streams.length * LANE);
      context.stroke();
      context.globalAlpha = 1;
    }
    const shown = selected && this.#map.page.itemIn(this.#map.plan, selected);
    if (shown) {
      this.#selection(context, shown);
    }
    const above = hovered && this.#map.page.itemIn(this.#map.plan, hovered);
    if (above && !(shown && above.kind === shown.kind && above.row === shown.row)) {
      this.#outline(context, above, 2, []);
    }
  }

  #selection(context, item) {
    const {from, to} = this.#map.page.neighboursOf(this.#map.plan, item);
    const own = this.#outline(context, item, 3, []);
    const link = (row, dash) => {
      const rect = this.#outline(context, {kind: 'buffer', row}, 2, dash);
      if (rect && own) {
        const [x, y] = inside(rect, own.x + own.width / 2, own.y + own.height / 2);
        context.beginPath();
        context.moveTo(...inside(own, x, y));
        context.lineTo(x, y);
        context.lineWidth = 1;
        context.stroke();
      }
    };
    from.forEach((row) => link(row, [4, 3]));
    to.forEach((row) => link(row, []));
    context.setLineDash([]);
    const {graph} = this.#map;
    if (item.kind === 'buffer') {
      this.#uses(context, item.row);
    } else if (item.kind === 'collective') {
      this.#outline(context, {kind: 'step', row: graph.collectives.get('step', item.row)}, 2, []);
    }
  }

  /** A mark where a buffer is written and wherever it is read, in the buffer and in the streams. */
  #uses(context, row) {
    const rect = this.#map.rect({kind: 'buffer', row});
    const steps = [this.#map.graph.first[row], ...(this.#map.graph.values.get('use_times', row) ?? [])];
    for (const step of new Set(steps.filter((at) => at >= 0 && at < this.#map.graph.steps))) {
      this.#outline(context, {kind: 'step', row: step}, 2, []);
      const use = this.#map.rect({kind: 'step', row: step});
      if (rect && use) {
        const x = use.x + use.width / 2;
        context.fillStyle = this.#map.page.colours.ink;
        context.beginPath();
        context.moveTo(x - 4, rect.y);
        context.lineTo(x + 4, rect.y);
        context.lineTo(x, rect.y + 6);
        context.fill();
      }
    }
  }

  #outline(context, item, width, dash) {
    const rect = this.#map.rect(item);
    if (rect) {
      const {ink, paper} = this.#map.page.colours;
      const out = width / 2;
      const around = [rect.x - out, rect.y - out, rect.width + width, rect.height + width];
      context.setLineDash([]);
      context.strokeStyle = paper;
      context.lineWidth = width + 2;
      context.strokeRect(...around);
      context.setLineDash(dash);
      context.strokeStyle = ink;
      context.lineWidth = width;
      context.strokeRect(...around);
      context.setLineDash([]);
    }
    return rect;
  }
}

/** The place in a rectangle that is nearest to another. */
function inside(rect, x, y) {
  return [Math.min(Math.max(x, rect.x), rect.x + rect.width), Math.min(Math.max(y, rect.y), rect.y + rect.height)];
}
