/* The selection, its connections and the pointer, drawn into a map's upper canvas. */

class Marks {
  #map;
  #context;

  constructor(map, context) {
    this.#map = map;
    this.#context = context;
  }

  paint() {
    const context = this.#context;
    const map = this.#map;
    context.clearRect(0, 0, map.width, map.height);
    this.#cursor(context);
    const {selected, hovered} = map.page;
    const shown = selected && map.page.itemIn(map.plan, selected);
    const above = hovered && map.page.itemIn(map.plan, hovered);
    if (above && !(shown && above.kind === shown.kind && above.row === shown.row)) {
      this.#connected(context, hovered, this.#outline(context, above, 2, []), 1);
    }
    if (shown) {
      this.#connected(context, selected, this.#outline(context, shown, 3, []), 2);
      if (shown.kind === 'buffer') {
        this.#uses(context, shown.row);
      } else if (shown.kind === 'collective') {
        this.#outline(context, {kind: 'step', row: map.graph.collectives.get('step', shown.row)}, 2, []);
      }
    }
  }

  /** A line through all arenas and streams where the pointer is. */
  #cursor(context) {
    const {pointer, width, streamsTop, graph, page} = this.#map;
    if (pointer && pointer[0] >= GUTTER && pointer[0] <= width - RIGHT) {
      const x = Math.round(pointer[0]) + 0.5;
      context.strokeStyle = page.colours.ink;
      context.globalAlpha = 0.25;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x, OVERVIEW);
      context.lineTo(x, streamsTop + graph.streams.length * LANE);
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  /** Outlines an item's neighbours in the graph, and draws lines to them. */
  #connected(context, item, own, width) {
    const {from, to} = this.#map.page.neighboursOf(this.#map.plan, item);
    const link = (row, dash) => {
      const rect = this.#outline(context, {kind: 'buffer', row}, width, dash);
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
