/* The map of one plan: arenas over the schedule, and its streams on the same axis. */

const GUTTER = 64;
const RIGHT = 14;
const OVERVIEW = 34;
const AXIS = 22;
const TITLE = 24;
const LANE = 24;
const LEAST_ARENA = 70;
const KINDS = Object.keys(Words.KINDS);
const LABELS = 600;

class PlanMap {
  #page;
  #base;
  #over;
  #canvas;
  #pending = false;
  #cells = new Uint8Array(0);
  #yPane = null;

  /**
   * @param page what is shown of all plans alike: axis, zoom, filters, selection
   * @param frame the element that it fills
   */
  constructor(page, plan, graph, frame, testid) {
    this.#page = page;
    this.plan = plan;
    this.graph = graph;
    this.frame = frame;
    this.drawn = 0;
    this.frameMs = 0;
    this.frames = 0;
    const base = el('canvas', {'aria-hidden': 'true'});
    this.#canvas = el('canvas', {
      'data-testid': testid,
      tabindex: '0',
      role: 'application',
      'aria-label': `Memory map and streams of ${graph.report.name}. Arrow keys pan, plus and minus zoom, `
        + 'brackets go from buffer to buffer, question mark for help.',
    });
    frame.append(base, this.#canvas);
    this.#base = base.getContext('2d');
    this.#over = this.#canvas.getContext('2d');
    this.#lists();
    this.#listen();
  }

  get node() {
    return this.#canvas;
  }

  remove() {
    this.frame.replaceChildren();
  }

  /** The buffers of each arena by how they look, so that colours change rarely. */
  #lists() {
    const {graph} = this;
    this.arenas = graph.arenas.map((arena) => {
      const styles = KINDS.flatMap((kind) => [0, 1].map((symmetric) => ({kind, symmetric, buffers: []})));
      for (const b of arena.buffers) {
        styles[2 * KINDS.indexOf(graph.values.get('role', b)) + graph.symmetric[b]].buffers.push(b);
      }
      return {...arena, styles: styles.filter((style) => style.buffers.length > 0), low: 0, zoom: 1};
    });
  }

  #listen() {
    const page = this.#page;
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

  /** Takes the size of the frame; returns whether it has one. */
  resize() {
    const {width, height} = this.frame.getBoundingClientRect();
    if (width < 2 * GUTTER || height < 50) {
      return false;
    }
    const ratio = window.devicePixelRatio || 1;
    this.width = Math.floor(width);
    this.height = Math.floor(height);
    for (const context of [this.#base, this.#over]) {
      context.canvas.width = this.width * ratio;
      context.canvas.height = this.height * ratio;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.#layout();
    this.rescale();
    return true;
  }

  #layout() {
    // The same for all plans, so that they can be compared.
    const names = this.#page.arenaNames();
    const free = this.height - OVERVIEW - AXIS - TITLE - this.#page.lanes() * LANE - 6 - names.length * TITLE;
    const sizes = names.map((name) => Math.sqrt(this.#page.arenaBytes(name)));
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
    this.#cells = new Uint8Array(this.width * this.height);
  }

  /** After a change of axis, zoom range or size. */
  rescale() {
    const {graph} = this;
    const time = this.#page.axis === 'time';
    this.whole = this.#page.wholeDomain();
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
    this.zoomed(this.#page.transform);
  }

  /** Shows what a transform leads to. */
  zoomed(transform) {
    this.#canvas.__zoom = transform;
    this.x = transform.rescaleX(this.base);
    this.draw();
  }

  zoomY(arena, factor, y = (arena.top + arena.bottom) / 2) {
    const offset = this.#y(arena).invert(y);
    arena.zoom = Math.min(Math.max(arena.zoom * factor, 1), this.#page.arenaBytes(arena.name) / 4096);
    const span = this.#page.arenaBytes(arena.name) / arena.zoom;
    this.#low(arena, offset - (span * (arena.bottom - y)) / (arena.bottom - arena.top));
  }

  #panY(arena, pixels) {
    const span = this.#page.arenaBytes(arena.name) / arena.zoom;
    this.#low(arena, arena.low + (span * pixels) / (arena.bottom - arena.top));
  }

  zoomAllY(factor) {
    this.arenas.forEach((arena) => this.zoomY(arena, factor));
  }

  /** Moves all arenas up or down by a part of what they show. */
  panAllY(part) {
    this.arenas.forEach((arena) => this.#panY(arena, part * (arena.bottom - arena.top)));
  }

  /** Shows the offsets that anything in the window takes, and no others. */
  fitWindow() {
    const {graph} = this;
    const [from, to] = this.#visible();
    const passes = this.#page.passes[this.plan];
    for (const arena of this.arenas) {
      const seen = Array.from(arena.buffers).filter((b) => passes[b] && graph.first[b] <= to - 2 && graph.last[b] >= from + 2);
      const low = d3.min(seen, (b) => graph.offset[b]) ?? 0;
      const high = d3.max(seen, (b) => graph.offset[b] + graph.bytes[b]) ?? arena.bytes;
      arena.zoom = Math.max(1, this.#page.arenaBytes(arena.name) / Math.max(1.06 * (high - low), 4096));
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
    const all = this.#page.arenaBytes(arena.name);
    arena.low = Math.min(Math.max(low, 0), all - all / arena.zoom);
    this.draw();
  }

  #y(arena) {
    const span = this.#page.arenaBytes(arena.name) / arena.zoom;
    return d3.scaleLinear([arena.low, arena.low + span], [arena.bottom, arena.top]);
  }

  #paneAt(y) {
    return this.arenas.find((arena) => y >= arena.top && y <= arena.bottom) ?? null;
  }

  /** From which step to which the window reaches. */
  #visible() {
    const [from, to] = this.x.domain();
    return [d3.bisectRight(this.at, from) - 3, d3.bisectLeft(this.at, to) + 1];
  }

  draw() {
    if (!this.#pending && this.x) {
      this.#pending = true;
      requestAnimationFrame(() => {
        this.#pending = false;
        this.#frame();
      });
    }
  }

  /** Draws all but what hovers above. */
  #frame() {
    const begin = performance.now();
    const context = this.#base;
    this.colours = this.#page.colours;
    context.clearRect(0, 0, this.width, this.height);
    context.textBaseline = 'middle';
    this.drawn = 0;
    this.#grid(context);
    this.arenas.forEach((arena) => this.#arena(context, arena));
    this.#streams(context);
    this.#overview(context);
    this.#overlay();
    this.frameMs = performance.now() - begin;
    this.frames++;
  }

  #ticks() {
    const ticks = this.x.ticks(Math.max(3, Math.floor((this.width - GUTTER) / 110)));
    const time = this.#page.axis === 'time';
    return ticks
      .filter((tick) => time || (Number.isInteger(tick) && tick >= 0 && tick < this.graph.steps))
      .map((tick) => ({
        x: this.x(time ? tick : tick + 0.5),
        text: time ? this.#time(tick) : tick.toLocaleString('en'),
      }));
  }

  #time(micros) {
    const span = this.x.domain()[1] - this.x.domain()[0];
    return span > 3000 ? `${+(micros / 1000).toFixed(2)} ms` : `${+micros.toFixed(2)} µs`;
  }

  #grid(context) {
    const {ink, muted, line} = this.colours;
    context.font = '11px system-ui, sans-serif';
    const y = OVERVIEW + AXIS / 2 + 1;
    context.fillStyle = muted;
    context.textAlign = 'right';
    context.fillText(this.#page.axis === 'time' ? 'time' : 'step', GUTTER - 8, y);
    context.textAlign = 'center';
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.beginPath();
    for (const tick of this.#ticks()) {
      if (tick.x < GUTTER || tick.x > this.width - RIGHT) {
        continue;
      }
      context.fillText(tick.text, Math.max(tick.x, GUTTER + 12), y);
      context.moveTo(Math.round(tick.x) + 0.5, OVERVIEW + AXIS);
      context.lineTo(Math.round(tick.x) + 0.5, this.streamsTop + this.graph.streams.length * LANE);
    }
    context.stroke();
    context.fillStyle = ink;
  }

  #arena(context, arena) {
    const {ink, muted, line, ground} = this.colours;
    const right = this.width - RIGHT;
    const y = this.#y(arena);
    context.textAlign = 'left';
    context.font = '600 12px system-ui, sans-serif';
    context.fillStyle = ink;
    const title = `${arena.name} arena`;
    context.fillText(title, GUTTER, arena.top - 11);
    const offset = context.measureText(title).width + 10;
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = muted;
    context.fillText(
      `${Words.bytes(arena.bytes)} · at most ${Words.bytes(arena.live)} live · `
        + `${arena.fragmentation.toFixed(1)} % fragmented`,
      GUTTER + offset, arena.top - 11);
    context.fillStyle = ground;
    context.fillRect(GUTTER, arena.top, right - GUTTER, arena.bottom - arena.top);

    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.strokeStyle = line;
    context.beginPath();
    const step = byteStep(y.domain(), Math.min((arena.bottom - arena.top) / 42, 10));
    for (let tick = Math.ceil(arena.low / step) * step; tick <= y.domain()[1]; tick += step) {
      const at = Math.round(y(tick)) + 0.5;
      context.moveTo(GUTTER - 4, at);
      context.lineTo(right, at);
      context.fillStyle = muted;
      context.fillText(Words.tick(tick, step), GUTTER - 8, at);
    }
    context.stroke();

    context.save();
    context.beginPath();
    context.rect(GUTTER, arena.top, right - GUTTER, arena.bottom - arena.top);
    context.clip();
    this.#buffers(context, arena, y);
    this.#lines(context, arena, y);
    context.restore();
  }

  #buffers(context, arena, y) {
    const {graph, at} = this;
    const passes = this.#page.passes[this.plan];
    const large = [];
    const [from, to] = this.#visible();
    const [x0, xs] = linear(this.x);
    const [y0, ys] = linear(y);
    const right = this.width - RIGHT;
    this.#cells.fill(0);
    const fill = (buffers, passing) => {
      for (const b of buffers) {
        if (graph.first[b] > to) {
          break;
        }
        if (graph.last[b] < from || passes[b] !== passing) {
          continue;
        }
        const left = Math.max(x0 + xs * at[graph.first[b] + 1], GUTTER - 2);
        const width = Math.min(x0 + xs * at[graph.last[b] + 2], right + 2) - left;
        const bottom = Math.min(y0 + ys * graph.offset[b], arena.bottom + 2);
        const top = Math.max(y0 + ys * (graph.offset[b] + graph.bytes[b]), arena.top - 2);
        if (width < 0 || bottom < top) {
          continue;
        }
        const height = bottom - top;
        if (width < 1 && height < 1) {
          // Many lie in one pixel; the first stands for all.
          const cell = Math.floor(top) * this.width + Math.floor(left);
          if (this.#cells[cell]) {
            continue;
          }
          this.#cells[cell] = 1;
        }
        context.fillRect(left, top, Math.max(width, 1), Math.max(height, 1));
        this.drawn++;
        if (passing && width >= 4 && height >= 4) {
          large.push({b, left, top, width, height});
        }
      }
    };
    context.fillStyle = this.colours.dimmed;
    arena.styles.forEach((style) => fill(style.buffers, 0));
    for (const style of arena.styles) {
      context.fillStyle = this.colours.fills[style.kind][style.symmetric];
      const begin = large.length;
      fill(style.buffers, 1);
      if (style.symmetric) {
        context.fillStyle = this.colours.hatches[style.kind];
        for (let i = begin; i < large.length; i++) {
          const {left, top, width, height} = large[i];
          context.fillRect(left, top, width, height);
        }
      }
    }
    this.#borders(context, large);
  }

  #borders(context, large) {
    const {ground, fills, texts, ink} = this.colours;
    context.lineWidth = 1;
    context.strokeStyle = ground;
    context.beginPath();
    for (const {left, top, width, height} of large) {
      context.rect(left, top, width, height);
    }
    context.stroke();
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'left';
    const labels = large.filter(({width, height}) => width >= 36 && height >= 13).slice(0, LABELS);
    for (const {b, left, top, width, height} of labels) {
      const role = this.graph.values.get('role', b);
      const symmetric = this.graph.symmetric[b];
      const text = shortened(this.graph.values.get('name', b), width - 8);
      const middle = top + height / 2;
      if (symmetric) {
        // Letters on hatching need a ground of their own.
        context.fillStyle = fills[role][1];
        context.fillRect(left + 2, middle - 7, context.measureText(text).width + 5, 14);
      }
      context.fillStyle = symmetric ? texts[role] : ink;
      context.fillText(text, left + 4, middle + 0.5);
    }
  }

  /** Size, lower bound and peak. */
  #lines(context, arena, y) {
    const {ink, paper} = this.colours;
    const right = this.width - RIGHT;
    const level = (bytes, dash) => {
      const at = Math.round(y(bytes)) + 0.5;
      context.setLineDash(dash);
      context.strokeStyle = ink;
      context.lineWidth = 1.25;
      context.beginPath();
      context.moveTo(GUTTER, at);
      context.lineTo(right, at);
      context.stroke();
      context.setLineDash([]);
      return at;
    };
    const tag = (text, x, at, align) => {
      context.font = '11px system-ui, sans-serif';
      const width = context.measureText(text).width + 10;
      const left = align === 'right' ? x - width : Math.min(Math.max(x - width / 2, GUTTER + 2), right - width - 2);
      const top = Math.min(Math.max(at - 9, arena.top + 2), arena.bottom - 19);
      context.fillStyle = ink;
      context.beginPath();
      context.roundRect(left, top, width, 17, 3);
      context.fill();
      context.fillStyle = paper;
      context.textAlign = 'left';
      context.fillText(text, left + 5, top + 9);
    };
    const close = Math.abs(y(arena.bytes) - y(arena.bound)) < 18;
    const size = level(arena.bytes, []);
    if (close) {
      tag(`size ${Words.bytes(arena.bytes)} · lower bound ${Words.bytes(arena.bound)}`, right - 4, size, 'right');
    } else {
      tag(`size ${Words.bytes(arena.bytes)}`, right - 4, size, 'right');
      tag(`lower bound of what must be here ${Words.bytes(arena.bound)}`, right - 4, level(arena.bound, [6, 4]), 'right');
    }
    const x = (this.x(this.at[arena.peakStep + 1]) + this.x(this.at[arena.peakStep + 2])) / 2;
    if (x >= GUTTER && x <= right) {
      context.setLineDash([2, 3]);
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x, arena.top);
      context.lineTo(x, arena.bottom);
      context.stroke();
      context.setLineDash([]);
      tag(`peak: ${Words.bytes(arena.live)} ${Words.when(this.graph, arena.peakStep)}`, x, arena.bottom - 12, 'middle');
    }
  }

  #span(step) {
    const {graph} = this;
    return this.#page.axis === 'time'
      ? [this.x(graph.begin[step]), this.x(graph.begin[step] + graph.duration[step])]
      : [this.x(step), this.x(graph.until[step] + 1)];
  }

  #streams(context) {
    const {ink, muted, ground, steps} = this.colours;
    const right = this.width - RIGHT;
    context.font = '600 12px system-ui, sans-serif';
    context.textAlign = 'left';
    context.fillStyle = ink;
    context.fillText('streams', GUTTER, this.streamsTop - 11);
    let x = GUTTER + context.measureText('streams').width + 14;
    context.font = '12px system-ui, sans-serif';
    for (const [kind, words] of [['op', 'op'], ['fused', 'fused ops'], ['start', 'collective'], ['join', 'wait']]) {
      context.fillStyle = steps[kind];
      context.fillRect(x, this.streamsTop - 16, 10, 10);
      context.fillStyle = muted;
      context.fillText(words, x + 14, this.streamsTop - 11);
      x += context.measureText(words).width + 30;
    }
    context.font = '11px system-ui, sans-serif';
    this.graph.streams.forEach((stream, lane) => {
      const top = this.streamsTop + lane * LANE;
      context.fillStyle = ground;
      context.fillRect(GUTTER, top, right - GUTTER, LANE - 3);
      context.fillStyle = muted;
      context.textAlign = 'right';
      context.fillText(stream.name, GUTTER - 8, top + LANE / 2 - 1);
      context.save();
      context.beginPath();
      context.rect(GUTTER, top, right - GUTTER, LANE - 3);
      context.clip();
      this.#lane(context, stream, top);
      context.restore();
    });
  }

  #lane(context, stream, top) {
    const {schedule} = this.graph;
    const {steps, stepTexts, dimmed, ground} = this.colours;
    const right = this.width - RIGHT;
    const height = LANE - 3;
    const wide = [];
    const shares = {dimmed: [], op: [], fused: [], join: [], start: []};
    const passes = this.#page.stepPasses[this.plan];
    const seen = stream.steps
      .map((step) => ({step, kind: schedule.get('kind', step), span: this.#span(step)}))
      .filter(({span: [from, to]}) => to >= GUTTER && from <= right);
    // Collectives are what people look for: where they are few, none is narrower than 2 pixels.
    const few = seen.filter(({kind}) => kind === 'start').length < (right - GUTTER) / 8;
    for (const {step, kind, span: [from, to]} of seen) {
      const look = passes && !passes[step] ? 'dimmed' : kind;
      const least = few && kind === 'start' ? 2 : 0;
      if (to - from < Math.max(1, least) && least === 0) {
        const column = Math.floor(from);
        shares[look][column] = (shares[look][column] ?? 0) + to - from;
        continue;
      }
      const left = Math.max(from, GUTTER - 2);
      wide.push({step, kind, look, left, width: Math.min(Math.max(to - from, least), right + 2 - left)});
    }
    // Of many steps in one column of pixels, each kind has its share of the height.
    const filled = [];
    for (const [look, columns] of Object.entries(shares)) {
      context.fillStyle = look === 'dimmed' ? dimmed : steps[look];
      columns.forEach((share, column) => {
        const under = filled[column] ?? 0;
        const part = Math.min(share * height, height - under);
        context.fillRect(column, top + under, 1, part);
        filled[column] = under + part;
        this.drawn++;
      });
    }
    const ordered = [...wide.filter(({kind}) => kind !== 'start'), ...wide.filter(({kind}) => kind === 'start')];
    for (const {look, left, width} of ordered) {
      context.fillStyle = look === 'dimmed' ? dimmed : steps[look];
      context.fillRect(left, top, width, height);
      this.drawn++;
      if (width > 4) {
        context.fillStyle = ground;
        context.fillRect(left + width - 0.5, top, 0.5, height);
      }
    }
    context.textAlign = 'left';
    for (const {step, kind, look, left, width} of ordered.filter((one) => one.width > 40)) {
      context.fillStyle = look === 'dimmed' ? this.colours.muted : stepTexts[kind];
      context.fillText(shortened(schedule.get('name', step), width - 8), left + 4, top + LANE / 2 - 1);
    }
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

  #overview(context) {
    const {muted, profile, shade, ink} = this.colours;
    const right = this.width - RIGHT;
    const bottom = OVERVIEW - 3;
    const most = this.#page.mostLive() || 1;
    const under = new Float64Array(right - GUTTER);
    this.columns.forEach((columns, i) => {
      context.fillStyle = profile[this.arenas[i].name];
      columns.forEach((bytes, column) => {
        const height = (bytes / most) * (OVERVIEW - 8);
        context.fillRect(GUTTER + column, bottom - under[column] - height, 1, height);
        under[column] += height;
      });
    });
    context.fillStyle = muted;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.fillText('live', GUTTER - 8, bottom - 10);
    const [from, to] = this.x.domain().map((value) => this.base(value));
    context.fillStyle = shade;
    context.fillRect(GUTTER, 0, from - GUTTER, bottom);
    context.fillRect(to, 0, right - to, bottom);
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.strokeRect(from + 0.5, 0.5, to - from - 1, bottom - 0.5);
  }

  /** What is selected, what it is connected to, and where the pointer is. */
  overlay() {
    if (this.x) {
      this.#overlay();
    }
  }

  #overlay() {
    const context = this.#over;
    const {ink} = this.colours ?? this.#page.colours;
    context.clearRect(0, 0, this.width, this.height);
    const {selected, hovered} = this.#page;
    if (this.pointer && this.pointer[0] >= GUTTER && this.pointer[0] <= this.width - RIGHT) {
      context.strokeStyle = ink;
      context.globalAlpha = 0.25;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(Math.round(this.pointer[0]) + 0.5, OVERVIEW);
      context.lineTo(Math.round(this.pointer[0]) + 0.5, this.streamsTop + this.graph.streams.length * LANE);
      context.stroke();
      context.globalAlpha = 1;
    }
    const shown = selected && this.#page.itemIn(this.plan, selected);
    if (shown) {
      this.#selection(context, shown);
    }
    const above = hovered && this.#page.itemIn(this.plan, hovered);
    if (above && !(shown && above.kind === shown.kind && above.row === shown.row)) {
      this.#outline(context, above, 2, []);
    }
  }

  #selection(context, item) {
    const {from, to} = this.#page.neighboursOf(this.plan, item);
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
    const {graph} = this;
    if (item.kind === 'buffer') {
      this.#uses(context, item.row);
    } else if (item.kind === 'collective') {
      this.#outline(context, {kind: 'step', row: graph.collectives.get('step', item.row)}, 2, []);
    }
  }

  /** A mark where a buffer is written and wherever it is read, in the buffer and in the streams. */
  #uses(context, row) {
    const rect = this.rect({kind: 'buffer', row});
    const steps = [this.graph.first[row], ...(this.graph.values.get('use_times', row) ?? [])];
    for (const step of new Set(steps.filter((at) => at >= 0 && at < this.graph.steps))) {
      this.#outline(context, {kind: 'step', row: step}, 2, []);
      const use = this.rect({kind: 'step', row: step});
      if (rect && use) {
        const x = use.x + use.width / 2;
        context.fillStyle = this.#page.colours.ink;
        context.beginPath();
        context.moveTo(x - 4, rect.y);
        context.lineTo(x + 4, rect.y);
        context.lineTo(x, rect.y + 6);
        context.fill();
      }
    }
  }

  #outline(context, item, width, dash) {
    const rect = this.rect(item);
    if (rect) {
      const {ink, paper} = this.#page.colours;
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

  /** Where an item is drawn, in the canvas; null where it is out of view. */
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
      const y = this.#y(arena);
      const left = this.x(this.at[graph.first[item.row] + 1]);
      const top = y(graph.offset[item.row] + graph.bytes[item.row]);
      return clipped(left, top, this.x(this.at[graph.last[item.row] + 2]) - left,
        y(graph.offset[item.row]) - top, arena.top, arena.bottom);
    }
    const step = item.kind === 'step' ? item.row : graph.collectives.get('step', item.row);
    const lane = graph.streams.findIndex(({name}) => name === graph.schedule.get('stream', step));
    if (lane < 0) {
      return null;
    }
    const [from, to] = this.#span(step);
    const top = this.streamsTop + lane * LANE;
    return clipped(from, top, to - from, LANE - 3, top, top + LANE - 3);
  }

  /** What lies at a place, or next to it within a few pixels. */
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
    const passes = this.#page.passes[this.plan];
    const [x0, xs] = linear(this.x);
    const [y0, ys] = linear(this.#y(arena));
    let best = -1;
    let least = 4;
    for (const b of arena.buffers) {
      if (!passes[b]) {
        continue;
      }
      const left = x0 + xs * at[graph.first[b] + 1] - x;
      const right = x - (x0 + xs * at[graph.last[b] + 2]);
      const under = y - (y0 + ys * graph.offset[b]);
      const over = y0 + ys * (graph.offset[b] + graph.bytes[b]) - y;
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
      const [from, to] = this.#span(step);
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

/** The place in a rectangle that is nearest to another. */
function inside(rect, x, y) {
  return [Math.min(Math.max(x, rect.x), rect.x + rect.width), Math.min(Math.max(y, rect.y), rect.y + rect.height)];
}

/** A scale as offset and slope, for loops. */
function linear(scale) {
  const zero = scale(0);
  return [zero, scale(1) - zero];
}

/** The distance between ticks: a power of two, so that about so many fit. */
function byteStep([low, high], ticks) {
  return 2 ** Math.ceil(Math.log2(Math.max((high - low) / Math.max(ticks, 2), 1)));
}

/** A name cut to what fits into so many pixels, in 11 px letters. */
function shortened(name, width) {
  const letters = Math.floor(width / 6.5);
  return name.length <= letters ? name : letters > 2 ? name.slice(0, letters - 1) + '…' : '';
}
