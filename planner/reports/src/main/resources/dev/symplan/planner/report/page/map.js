/* The map of one plan: arenas over the schedule, and its streams on the same axis. */

const GUTTER = 64;
const RIGHT = 14;
const OVERVIEW = 34;
const AXIS = 22;
const TITLE = 24;
const LANE = 24;
const LEAST_ARENA = 70;
const KINDS = Object.keys(Words.KINDS);

class PlanMap {
  #canvas;
  #painter;
  #marks;
  #contexts;
  #pending = null;
  #ratio = 0;
  #yPane = null;

  /**
   * @param page what is shown of all plans alike: axis, zoom, filters, selection
   * @param frame the element that it fills
   */
  constructor(page, plan, graph, frame, testid) {
    this.page = page;
    this.plan = plan;
    this.graph = graph;
    this.frame = frame;
    this.frameMs = 0;
    this.frames = 0;
    const base = el('canvas', {'aria-hidden': 'true'});
    this.#canvas = el('canvas', {
      'data-testid': testid,
      tabindex: '0',
      role: 'application',
      'aria-label': `Memory map and streams of ${graph.report.name}. Arrow keys pan, plus and minus zoom, `
        + 'brackets select the next and previous buffer, question mark for help.',
    });
    frame.append(base, this.#canvas);
    this.#contexts = [base, this.#canvas].map((canvas) => canvas.getContext('2d'));
    this.#painter = new Painter(this, this.#contexts[0]);
    this.#marks = new Marks(this, this.#contexts[1]);
    this.#lists();
    this.#listen();
  }

  get node() {
    return this.#canvas;
  }

  /** The number of rectangles in the last frame. */
  get drawn() {
    return this.#painter.drawn;
  }

  /** The buffers of each arena by how they look, so that colours change rarely. */
  #lists() {
    const {graph} = this;
    this.arenas = graph.arenas.map((arena) => {
      // Temporaries come first: where many buffers share a pixel, the rarer kinds stay visible.
      const kinds = [...KINDS].reverse();
      const styles = kinds.flatMap((kind) => [0, 1].map((symmetric) => ({kind, symmetric, buffers: []})));
      for (const b of arena.buffers) {
        styles[2 * kinds.indexOf(graph.values.get('role', b)) + graph.symmetric[b]].buffers.push(b);
      }
      return {...arena, styles: styles.filter((style) => style.buffers.length > 0), low: 0, zoom: 1};
    });
  }

  #listen() {
    const {page} = this;
    const canvas = this.#canvas;
    this.zoom = d3.zoom()
      .filter((event) => !event.button && !(event.type === 'wheel'
        ? event.shiftKey || event.offsetX < GUTTER
        : event.offsetY < OVERVIEW))
      .on('start', (event) => {
        this.#yPane = event.sourceEvent ? this.#paneAt(d3.pointer(event.sourceEvent, canvas)[1]) : null;
      })
      .on('zoom', (event) => {
        if (event.sourceEvent) {
          const dy = event.sourceEvent.movementY;
          if (event.sourceEvent.type === 'mousemove' && this.#yPane && dy) {
            this.#panY(this.#yPane, dy);
          }
          page.zoomTo(event.transform);
        }
      });
    d3.select(canvas).call(this.zoom);
    canvas.addEventListener('wheel', (event) => {
      const pane = this.#paneAt(event.offsetY);
      if (pane && (event.shiftKey || event.offsetX < GUTTER)) {
        event.preventDefault();
        this.zoomY(pane, 2 ** (-(event.deltaY || event.deltaX) * 0.003), event.offsetY);
      }
    }, {passive: false});
    const brush = (event) => page.centre(this.x.copy().domain(this.whole).invert(event.offsetX));
    canvas.addEventListener('pointerdown', (event) => {
      if (event.offsetY < OVERVIEW) {
        canvas.setPointerCapture(event.pointerId);
        this.brushing = true;
        brush(event);
      }
    });
    canvas.addEventListener('pointerup', () => (this.brushing = false));
    canvas.addEventListener('pointermove', (event) => {
      if (this.brushing) {
        brush(event);
        return;
      }
      this.pointer = [event.offsetX, event.offsetY];
      page.hover(event.buttons ? null : this.pick(event.offsetX, event.offsetY), event);
    });
    canvas.addEventListener('pointerleave', () => {
      this.pointer = null;
      page.hover(null);
    });
    canvas.addEventListener('click', (event) => {
      if (event.offsetY >= OVERVIEW) {
        page.select(this.pick(event.offsetX, event.offsetY), false);
      }
    });
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }

  /** Adopts the size of the frame, if it has changed. */
  resize() {
    const frame = this.frame.getBoundingClientRect();
    const width = Math.floor(frame.width);
    const height = Math.floor(frame.height);
    const ratio = window.devicePixelRatio;
    const same = width === this.width && height === this.height && ratio === this.#ratio;
    if (same || width < 2 * GUTTER || height < 2 * LEAST_ARENA) {
      return;
    }
    this.width = width;
    this.height = height;
    this.#ratio = ratio;
    for (const {canvas} of this.#contexts) {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    this.#contexts.forEach((context) => context.setTransform(ratio, 0, 0, ratio, 0, 0));
    this.#layout();
    this.rescale();
    // Draw at once: resizing has erased the canvas.
    this.#paint();
  }

  #layout() {
    // The same for all plans, so that they can be compared.
    const names = this.page.arenaNames();
    const free = this.height - OVERVIEW - AXIS - TITLE - this.page.lanes() * LANE - 6 - names.length * TITLE;
    const sizes = names.map((name) => Math.sqrt(this.page.arenaBytes(name)));
    const all = d3.sum(sizes) || 1;
    const spare = Math.max(0, free - LEAST_ARENA * names.length);
    let top = OVERVIEW + AXIS;
    names.forEach((name, i) => {
      const bottom = top + TITLE + LEAST_ARENA + (spare * sizes[i]) / all;
      const arena = this.arenas.find((one) => one.name === name);
      if (arena) {
        Object.assign(arena, {top: top + TITLE, bottom});
      }
      top = bottom;
    });
    this.streamsTop = top + TITLE;
  }

  /** Where each buffer begins and ends on the axis of its arena's offsets. */
  #place() {
    const {graph} = this;
    this.low = new Float64Array(graph.values.count);
    this.high = new Float64Array(graph.values.count);
    for (const arena of this.arenas) {
      const offsets = this.page.offsetAxis(arena.name);
      for (const b of arena.buffers) {
        this.low[b] = offsets.at(graph.offset[b]);
        this.high[b] = offsets.at(graph.offset[b] + graph.bytes[b]);
      }
    }
  }

  /** Updates the scales after a change of axis, zoom range or size. */
  rescale() {
    const {graph} = this;
    this.#place();
    const time = this.page.axis === 'time';
    this.whole = this.page.wholeDomain();
    this.at = new Float64Array(graph.steps + 3);
    for (let i = 0; i < this.at.length; i++) {
      this.at[i] = time ? graph.edges[Math.min(Math.max(i - 1, 0), graph.steps)] : i - 1;
    }
    this.base = d3.scaleLinear(this.whole, [GUTTER, this.width - RIGHT]);
    const most = Math.max(8, time ? (this.whole[1] - this.whole[0]) * 4 : (this.whole[1] - this.whole[0]) / 3);
    const extent = [[GUTTER, 0], [this.width - RIGHT, this.height]];
    this.zoom.scaleExtent([1, most]).extent(extent)
      .translateExtent([[GUTTER, -Infinity], [this.width - RIGHT, Infinity]]);
    this.#profiles();
    this.zoomed(this.page.transform);
  }

  /** Applies a transform of the zoom. */
  zoomed(transform) {
    this.#canvas.__zoom = transform;
    this.x = transform.rescaleX(this.base);
    this.draw();
  }

  zoomY(arena, factor, y = (arena.top + arena.bottom) / 2) {
    const offset = this.yOf(arena).invert(y);
    arena.zoom = Math.min(Math.max(arena.zoom * factor, 1), this.page.arenaBytes(arena.name) / 4096);
    const span = this.page.arenaBytes(arena.name) / arena.zoom;
    this.#low(arena, offset - (span * (arena.bottom - y)) / (arena.bottom - arena.top));
  }

  #panY(arena, pixels) {
    const span = this.page.arenaBytes(arena.name) / arena.zoom;
    this.#low(arena, arena.low + (span * pixels) / (arena.bottom - arena.top));
  }

  zoomAllY(factor) {
    this.arenas.forEach((arena) => this.zoomY(arena, factor));
  }

  /** Moves all arenas up or down by a part of what they show. */
  panAllY(part) {
    this.arenas.forEach((arena) => this.#panY(arena, part * (arena.bottom - arena.top)));
  }

  /** Shows only the offsets that are used in the window. */
  fitWindow() {
    const {graph} = this;
    const [from, to] = this.visible();
    const passes = this.page.finder.passes[this.plan];
    for (const arena of this.arenas) {
      const seen = Array.from(arena.buffers).filter((b) => passes[b] && graph.first[b] <= to - 2 && graph.last[b] >= from + 2);
      const low = d3.min(seen, (b) => this.low[b]) ?? 0;
      const high = d3.max(seen, (b) => this.high[b]) ?? arena.bytes;
      arena.zoom = Math.max(1, this.page.arenaBytes(arena.name) / Math.max(1.06 * (high - low), 4096));
      this.#low(arena, low);
    }
  }

  fitY() {
    this.arenas.forEach((arena) => {
      arena.low = 0;
      arena.zoom = 1;
    });
  }

  #low(arena, low) {
    const all = this.page.arenaBytes(arena.name);
    arena.low = Math.min(Math.max(low, 0), all - all / arena.zoom);
    this.draw();
  }

  /** Converts a place on the axis of offsets to pixels. */
  yOf(arena) {
    const span = this.page.arenaBytes(arena.name) / arena.zoom;
    return d3.scaleLinear([arena.low, arena.low + span], [arena.bottom, arena.top]);
  }

  #paneAt(y) {
    return this.arenas.find((arena) => y >= arena.top && y <= arena.bottom) ?? null;
  }

  /** The first and last step in the window. */
  visible() {
    const [from, to] = this.x.domain();
    return [d3.bisectRight(this.at, from) - 3, d3.bisectLeft(this.at, to) + 1];
  }

  /** Draws everything before the next frame, however often it is called. */
  draw() {
    if (this.#pending === null && this.x) {
      this.#pending = requestAnimationFrame(() => this.#paint());
    }
  }

  #paint() {
    cancelAnimationFrame(this.#pending);
    this.#pending = null;
    const begin = performance.now();
    this.#painter.paint();
    this.#marks.paint();
    this.frameMs = performance.now() - begin;
    this.frames++;
  }

  /** The most bytes that are live in each column of pixels, over the whole schedule. */
  #profiles() {
    const columns = this.width - RIGHT - GUTTER;
    this.columns = this.arenas.map((arena) => {
      const most = new Float64Array(columns);
      const last = columns - 1;
      for (let i = 0; i + 1 < this.at.length; i++) {
        const from = Math.min(Math.max(Math.floor(this.base(this.at[i]) - GUTTER), 0), last);
        const to = Math.min(Math.max(Math.ceil(this.base(this.at[i + 1]) - GUTTER) - 1, from), last);
        for (let column = from; column <= to; column++) {
          most[column] = Math.max(most[column], arena.profile[i]);
        }
      }
      return most;
    });
  }

  /** Draws everything that changes with selection and pointer. */
  mark() {
    if (this.x) {
      this.#marks.paint();
    }
  }

  /** The range of a step on the x axis. */
  spanOf(step) {
    const {graph} = this;
    return this.page.axis === 'time'
      ? [this.x(graph.begin[step]), this.x(graph.begin[step] + graph.duration[step])]
      : [this.x(step), this.x(graph.until[step] + 1)];
  }

  /** Where an item is drawn, in the canvas; null if it is out of view. */
  rect(item) {
    const {graph} = this;
    const right = this.width - RIGHT;
    const clipped = (left, top, width, height, low, high) => {
      const x = Math.max(left, GUTTER);
      const y = Math.max(top, low);
      const w = Math.min(left + Math.max(width, 1), right) - x;
      const h = Math.min(top + Math.max(height, 1), high) - y;
      return w <= 0 || h <= 0 ? null : {x, y, width: w, height: h};
    };
    if (item.kind === 'buffer') {
      const arena = this.arenas.find(({name}) => name === graph.values.get('arena', item.row));
      if (!arena) {
        return null;
      }
      const y = this.yOf(arena);
      const left = this.x(this.at[graph.first[item.row] + 1]);
      const top = y(this.high[item.row]);
      return clipped(left, top, this.x(this.at[graph.last[item.row] + 2]) - left,
        y(this.low[item.row]) - top, arena.top, arena.bottom);
    }
    const step = item.kind === 'step' ? item.row : graph.collectives.get('step', item.row);
    const lane = graph.streams.findIndex(({name}) => name === graph.schedule.get('stream', step));
    if (lane < 0) {
      return null;
    }
    const [from, to] = this.spanOf(step);
    const top = this.streamsTop + lane * LANE;
    return clipped(from, top, to - from, LANE - 3, top, top + LANE - 3);
  }

  /** The item at a place, or within a few pixels of it. */
  pick(x, y) {
    if (x < GUTTER || x > this.width - RIGHT || !this.x) {
      return null;
    }
    const arena = this.#paneAt(y);
    const row = arena ? this.#bufferAt(arena, x, y) : this.#stepAt(x, y);
    if (row < 0) {
      return null;
    }
    if (arena) {
      return {plan: this.plan, kind: 'buffer', row};
    }
    const kind = this.graph.schedule.get('kind', row);
    const collective = kind === 'start' ? this.graph.collectiveAt.get(this.graph.schedule.get('collective', row)) : -1;
    return collective >= 0
      ? {plan: this.plan, kind: 'collective', row: collective}
      : {plan: this.plan, kind: 'step', row};
  }

  #bufferAt(arena, x, y) {
    const {graph, at} = this;
    const passes = this.page.finder.passes[this.plan];
    const [x0, xs] = linear(this.x);
    const [y0, ys] = linear(this.yOf(arena));
    let best = -1;
    let least = 4;
    for (const b of arena.buffers) {
      if (!passes[b]) {
        continue;
      }
      const left = x0 + xs * at[graph.first[b] + 1] - x;
      const right = x - (x0 + xs * at[graph.last[b] + 2]);
      const under = y - (y0 + ys * this.low[b]);
      const over = y0 + ys * this.high[b] - y;
      const away = Math.max(left, right, 0) + Math.max(under, over, 0);
      if (away < least) {
        least = away;
        best = b;
      }
    }
    return best;
  }

  #stepAt(x, y) {
    const stream = this.graph.streams[Math.floor((y - this.streamsTop) / LANE)];
    let best = -1;
    let least = 4;
    for (const step of stream?.steps ?? []) {
      const [from, to] = this.spanOf(step);
      const away = Math.max(from - x, x - to, 0);
      const isCollective = this.graph.schedule.get('kind', step) === 'start';
      if (away < least || (away === least && isCollective)) {
        least = away;
        best = step;
      }
    }
    return best;
  }
}

/** A scale as offset and slope, for loops. */
function linear(scale) {
  const zero = scale(0);
  return [zero, scale(1) - zero];
}
