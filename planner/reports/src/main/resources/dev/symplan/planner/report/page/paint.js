/* The contents of a map, drawn into its lower canvas. */

const LABELS = 600;

class Painter {
  #map;
  #context;
  #cells = new Uint8Array(0);

  constructor(map, context) {
    this.#map = map;
    this.#context = context;
    this.drawn = 0;
  }

  /** Draws everything anew. */
  paint() {
    const context = this.#context;
    this.colours = this.#map.page.colours;
    if (this.#cells.length !== this.#map.width * this.#map.height) {
      this.#cells = new Uint8Array(this.#map.width * this.#map.height);
    }
    context.clearRect(0, 0, this.#map.width, this.#map.height);
    context.textBaseline = 'middle';
    this.drawn = 0;
    this.#grid(context);
    this.#map.arenas.forEach((arena) => this.#arena(context, arena));
    this.#streams(context);
    this.#graphs(context);
    this.#overview(context);
  }

  /** A line where each graph of a program begins, with the graphs' names on the axis. */
  #graphs(context) {
    const {ink, paper} = this.colours;
    const {graph, at} = this.#map;
    const right = this.#map.width - RIGHT;
    const bottom = this.#map.streamsTop + graph.streams.length * LANE;
    graph.parts.forEach(({name, first, end}) => {
      const left = this.#map.x(at[first + 1]);
      const until = Math.min(this.#map.x(at[end + 1]), right);
      if (left >= GUTTER && left <= right && first > 0) {
        context.strokeStyle = ink;
        context.lineWidth = 2;
        context.beginPath();
        context.moveTo(left, OVERVIEW);
        context.lineTo(left, bottom);
        context.stroke();
      }
      const begin = Math.max(left, GUTTER) + 3;
      const text = shortened(name, until - begin - 12);
      if (until - begin < 30) {
        return;
      }
      context.font = '600 11px system-ui, sans-serif';
      context.textAlign = 'left';
      context.fillStyle = paper;
      context.fillRect(begin, OVERVIEW + 2, context.measureText(text).width + 6, AXIS - 4);
      context.fillStyle = ink;
      context.fillText(text, begin + 3, OVERVIEW + AXIS / 2 + 1);
    });
  }

  #ticks() {
    const ticks = this.#map.x.ticks(Math.max(3, Math.floor((this.#map.width - GUTTER) / 110)));
    const time = this.#map.page.axis === 'time';
    return ticks
      .filter((tick) => time || (Number.isInteger(tick) && tick >= 0 && tick < this.#map.graph.steps))
      .map((tick) => ({
        x: this.#map.x(time ? tick : tick + 0.5),
        text: time ? this.#time(tick) : tick.toLocaleString('en'),
      }));
  }

  #time(micros) {
    const span = this.#map.x.domain()[1] - this.#map.x.domain()[0];
    return span > 3000 ? `${+(micros / 1000).toFixed(2)} ms` : `${+micros.toFixed(2)} µs`;
  }

  #grid(context) {
    const {ink, muted, line} = this.colours;
    context.font = '11px system-ui, sans-serif';
    const y = OVERVIEW + AXIS / 2 + 1;
    context.fillStyle = muted;
    context.textAlign = 'right';
    context.fillText(this.#map.page.axis === 'time' ? 'time' : 'step', GUTTER - 8, y);
    context.textAlign = 'center';
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.beginPath();
    for (const tick of this.#ticks()) {
      if (tick.x < GUTTER || tick.x > this.#map.width - RIGHT) {
        continue;
      }
      context.fillText(tick.text, Math.max(tick.x, GUTTER + 12), y);
      context.moveTo(Math.round(tick.x) + 0.5, OVERVIEW + AXIS);
      context.lineTo(Math.round(tick.x) + 0.5, this.#map.streamsTop + this.#map.graph.streams.length * LANE);
    }
    context.stroke();
    context.fillStyle = ink;
  }

  #arena(context, arena) {
    const {ink, muted, line, ground} = this.colours;
    const right = this.#map.width - RIGHT;
    const y = this.#map.yOf(arena);
    context.textAlign = 'left';
    context.font = '600 12px system-ui, sans-serif';
    context.fillStyle = ink;
    const title = `${arena.name} arena`;
    context.fillText(title, GUTTER, arena.top - 11);
    const offset = context.measureText(title).width + 10;
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = muted;
    this.#legend(context, arena, GUTTER + offset);
    context.fillStyle = ground;
    context.fillRect(GUTTER, arena.top, right - GUTTER, arena.bottom - arena.top);

    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.strokeStyle = line;
    context.beginPath();
    const offsets = this.#map.page.offsetAxis(arena.name);
    const span = (y.domain()[1] - y.domain()[0]) / offsets.unitsPerByte;
    const step = byteStep([0, span], Math.min((arena.bottom - arena.top) / 42, 10));
    const shown = y.domain().map((place) => offsets.invert(place));
    for (const [from, to] of offsets.plain(shown)) {
      for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
        const at = Math.round(y(offsets.at(tick))) + 0.5;
        context.moveTo(GUTTER - 4, at);
        context.lineTo(right, at);
        context.fillStyle = muted;
        context.fillText(Words.tick(tick, step), GUTTER - 8, at);
      }
    }
    context.stroke();

    context.save();
    context.beginPath();
    context.rect(GUTTER, arena.top, right - GUTTER, arena.bottom - arena.top);
    context.clip();
    const large = this.#buffers(context, arena, y);
    const rip = offsets.stretch ? y(offsets.rip) : NaN;
    if (offsets.stretch) {
      this.#rip(context, rip);
    }
    this.#lines(context, arena, offsets, y);
    this.#names(context, large, rip);
    context.restore();
    if (rip > arena.top && rip < arena.bottom) {
      context.font = 'italic 11px system-ui, sans-serif';
      context.textAlign = 'right';
      context.fillStyle = ink;
      const length = Words.bytes(offsets.stretch.to - offsets.stretch.from);
      context.fillText(`↕ ${length.length > 8 ? length.replace(/\.\d/, '') : length}`, GUTTER - 6, rip);
    }
  }

  /** The legend of the lines across an arena, in its heading, where it covers nothing. */
  #legend(context, arena, left) {
    const {ink, muted} = this.colours;
    const sizes = [arena.bytes, arena.bound].map(Words.bytes);
    const entries = [
      {dash: [], text: sizes[0] === sizes[1] ? `size and lower bound ${sizes[0]}` : `size ${sizes[0]}`},
      ...(sizes[0] === sizes[1] ? [] : [{dash: [6, 4], text: `lower bound ${sizes[1]}`}]),
      {dash: [2, 3], text: `peak ${Words.bytes(arena.live)} ${Words.when(this.#map.graph, arena.peakStep)}`},
      {dash: null, text: `${arena.fragmentation.toFixed(1)} % fragmented`},
    ];
    let x = left;
    for (const {dash, text} of entries) {
      const sample = dash ? 26 : 0;
      const width = sample + context.measureText(text).width;
      if (x + width > this.#map.width - RIGHT) {
        return;
      }
      if (dash) {
        context.setLineDash(dash);
        context.strokeStyle = ink;
        context.lineWidth = 1.5;
        context.beginPath();
        context.moveTo(x, arena.top - 11.5);
        context.lineTo(x + sample - 6, arena.top - 11.5);
        context.stroke();
        context.setLineDash([]);
      }
      context.fillStyle = muted;
      context.fillText(text, x + sample, arena.top - 11);
      x += width + 16;
    }
  }

  /** The break across a stretch of offsets that is drawn shortened. */
  #rip(context, at) {
    const {paper, muted} = this.colours;
    const right = this.#map.width - RIGHT;
    const edge = (shift) => d3.range(GUTTER, right + 8, 8).map((x, i) => [x, at + shift + (i % 2 === 0 ? -3 : 3)]);
    const [upper, lower] = [edge(-3), edge(3)];
    context.fillStyle = paper;
    context.beginPath();
    [...upper, ...lower.toReversed()].forEach((point) => context.lineTo(...point));
    context.fill();
    context.strokeStyle = muted;
    context.lineWidth = 1;
    for (const line of [upper, lower]) {
      context.beginPath();
      line.forEach((point) => context.lineTo(...point));
      context.stroke();
    }
  }

  #buffers(context, arena, y) {
    const {graph, at, low, high} = this.#map;
    const passes = this.#map.page.finder.passes[this.#map.plan];
    const large = [];
    const [from, to] = this.#map.visible();
    const [x0, xs] = linear(this.#map.x);
    const [y0, ys] = linear(y);
    const right = this.#map.width - RIGHT;
    this.#cells.fill(0);
    // Few buffers can each be seen; the colours of many buffers mix.
    const seen = arena.buffers.length * Math.min((to - from) / graph.steps, 1);
    const least = seen < 4 * (arena.bottom - arena.top) ? 1 : 0.1;
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
        const bottom = Math.min(y0 + ys * low[b], arena.bottom + 2);
        const top = Math.max(y0 + ys * high[b], arena.top - 2);
        if (width < 0 || bottom < top) {
          continue;
        }
        const height = bottom - top;
        if (width < 1 && height < 1) {
          // Many buffers share a pixel; the first stands for all of them.
          const cell = Math.floor(top) * this.#map.width + Math.floor(left);
          if (this.#cells[cell]) {
            continue;
          }
          this.#cells[cell] = 1;
        }
        context.fillRect(left, top, Math.max(width, least), Math.max(height, least));
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
    context.lineWidth = 1;
    context.strokeStyle = this.colours.ground;
    context.beginPath();
    for (const {left, top, width, height} of large) {
      context.rect(left, top, width, height);
    }
    context.stroke();
    return large;
  }

  /**
   * @param rip where no name is written; NaN for nowhere
   */
  #names(context, large, rip) {
    const {fills, texts, ink} = this.colours;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'left';
    const labels = large.filter(({width, height}) => width >= 36 && height >= 13).slice(0, LABELS);
    for (const {b, left, top, width, height} of labels) {
      const role = this.#map.graph.values.get('role', b);
      const symmetric = this.#map.graph.symmetric[b];
      const text = shortened(this.#map.graph.values.get('name', b), width - 8);
      const centre = top + height / 2;
      const middle = Math.abs(centre - rip) < 16 && height > 50 ? rip + 18 : centre;
      if (symmetric) {
        // Letters on hatching need a plain background.
        context.fillStyle = fills[role][1];
        context.fillRect(left + 2, middle - 7, context.measureText(text).width + 5, 14);
      }
      context.fillStyle = symmetric ? texts[role] : ink;
      context.fillText(text, left + 4, middle + 0.5);
    }
  }

  /** Size, lower bound and peak. */
  #lines(context, arena, offsets, y) {
    const {ink} = this.colours;
    const right = this.#map.width - RIGHT;
    const level = (bytes, dash) => {
      const at = Math.round(y(offsets.at(bytes))) + 0.5;
      context.setLineDash(dash);
      context.strokeStyle = ink;
      context.lineWidth = 1.25;
      context.beginPath();
      context.moveTo(GUTTER, at);
      context.lineTo(right, at);
      context.stroke();
      context.setLineDash([]);
    };
    level(arena.bytes, []);
    if (arena.bound !== arena.bytes) {
      level(arena.bound, [6, 4]);
    }
    const x = (this.#map.x(this.#map.at[arena.peakStep + 1]) + this.#map.x(this.#map.at[arena.peakStep + 2])) / 2;
    if (x >= GUTTER && x <= right) {
      context.setLineDash([2, 3]);
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(x, arena.top);
      context.lineTo(x, arena.bottom);
      context.stroke();
      context.setLineDash([]);
    }
  }

  #streams(context) {
    const {ink, muted, ground, steps} = this.colours;
    const right = this.#map.width - RIGHT;
    context.font = '600 12px system-ui, sans-serif';
    context.textAlign = 'left';
    context.fillStyle = ink;
    context.fillText('streams', GUTTER, this.#map.streamsTop - 11);
    let x = GUTTER + context.measureText('streams').width + 14;
    context.font = '12px system-ui, sans-serif';
    for (const [kind, words] of [['op', 'op'], ['fused', 'fused ops'], ['start', 'collective'], ['join', 'wait']]) {
      context.fillStyle = steps[kind];
      context.fillRect(x, this.#map.streamsTop - 16, 10, 10);
      context.fillStyle = muted;
      context.fillText(words, x + 14, this.#map.streamsTop - 11);
      x += context.measureText(words).width + 30;
    }
    context.font = '11px system-ui, sans-serif';
    this.#map.graph.streams.forEach((stream, lane) => {
      const top = this.#map.streamsTop + lane * LANE;
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
    const {schedule} = this.#map.graph;
    const {steps, stepTexts, dimmed, ground} = this.colours;
    const right = this.#map.width - RIGHT;
    const height = LANE - 3;
    const wide = [];
    const shares = {dimmed: [], op: [], fused: [], join: [], start: []};
    const passes = this.#map.page.finder.stepPasses[this.#map.plan];
    const seen = stream.steps
      .map((step) => ({step, kind: schedule.get('kind', step), span: this.#map.spanOf(step)}))
      .filter(({span: [from, to]}) => to >= GUTTER && from <= right);
    // People look for collectives: if there are few, none is narrower than 2 pixels.
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

  #overview(context) {
    const {muted, profile, shade, ink} = this.colours;
    const right = this.#map.width - RIGHT;
    const bottom = OVERVIEW - 3;
    const live = this.#map.page.liveScale();
    const under = new Float64Array(right - GUTTER);
    const top = (bytes) => bottom - live.at(bytes) * (OVERVIEW - 8);
    this.#map.columns.forEach((columns, i) => {
      context.fillStyle = profile[this.#map.arenas[i].name];
      columns.forEach((bytes, column) => {
        const low = top(under[column]);
        under[column] += bytes;
        context.fillRect(GUTTER + column, top(under[column]), 1, low - top(under[column]));
      });
    });
    context.fillStyle = muted;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.fillText(live.uneven ? '√ live' : 'live', GUTTER - 8, bottom - 10);
    const [from, to] = this.#map.x.domain().map((value) => this.#map.base(value));
    context.fillStyle = shade;
    context.fillRect(GUTTER, 0, from - GUTTER, bottom);
    context.fillRect(to, 0, right - to, bottom);
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.strokeRect(from + 0.5, 0.5, to - from - 1, bottom - 0.5);
  }
}

/** The distance between ticks: a power of two, so that about this many fit. */
function byteStep([low, high], ticks) {
  return 2 ** Math.ceil(Math.log2(Math.max((high - low) / Math.max(ticks, 2), 1)));
}

/** A name, cut to fit into this many pixels, in 11 px letters. */
function shortened(name, width) {
  const letters = Math.floor(width / 6.5);
  return name.length <= letters ? name : letters > 2 ? name.slice(0, letters - 1) + '…' : '';
}
