/* The page: what is shown of which plan, and everything that changes it. */

class Page {
  #maps = [];
  #haystacks = null;
  #neighbours = null;
  #shown = 0;

  constructor() {
    this.reports = [];
    this.graphs = [];
    this.axis = 'steps';
    this.transform = d3.zoomIdentity;
    this.selected = null;
    this.hovered = null;
    this.query = '';
    this.hits = [];
    this.hit = -1;
    this.difference = null;
    this.filter = {kinds: new Set(KINDS), space: 'all', size: 0, group: '', changed: false};
    this.passes = [];
    this.stepPasses = [];
    this.loadMs = null;
  }

  start() {
    this.#theme();
    const embedded = (id) => document.getElementById(id).textContent;
    this.reports = [new Report(JSON.parse(embedded('first')))];
    if (embedded('second').trim()) {
      this.reports.push(new Report(JSON.parse(embedded('second'))));
    }
    this.panels = new Panels(this);
    this.#controls();
    this.#choices();
    this.#show();
    this.#expose();
  }

  /** Shows the chosen graph of each plan. */
  #show() {
    const at = Number(document.getElementById('graph').value);
    this.graphs = this.reports.map((report) => report.graphs[Math.min(at, report.graphs.length - 1)]);
    this.selected = null;
    this.hovered = null;
    this.#haystacks = null;
    this.transform = d3.zoomIdentity;
    this.difference = this.graphs.length > 1 ? new Difference(...this.graphs) : null;
    this.#groups();
    const main = document.getElementById('maps');
    main.replaceChildren();
    main.classList.toggle('two', this.graphs.length > 1);
    document.getElementById('unload').hidden = this.graphs.length < 2;
    document.getElementById('changed').hidden = this.graphs.length < 2;
    this.filter.changed &&= this.graphs.length > 1;
    this.#maps = this.graphs.map((graph, plan) => {
      const frame = el('div', {class: 'frame'});
      const caption = el('div', {class: 'caption'}, this.graphs.length > 1 ? this.#caption(graph.report, plan) : '');
      main.append(el('section', {class: 'plan', 'aria-label': graph.report.name}, caption, frame));
      return new PlanMap(this, plan, graph, frame, plan === 0 ? 'map' : 'map-b');
    });
    this.#heading();
    this.#refilter();
    this.panels.answers();
    this.panels.differences(this.difference);
    this.#maps.forEach((map) => map.resize());
  }

  #caption(report, plan) {
    return `${plan === 0 ? 'left' : 'right'}: ${report.name} · ${report.digest.slice(0, 12)} · `
      + `${Words.micros(report.total('time', 'predicted_us'))} · ${Words.bytes(report.total('arenas', 'total_bytes'))}`;
  }

  #heading() {
    const [report] = this.reports;
    document.getElementById('plan-name').textContent = report.name;
    document.getElementById('plan-facts').textContent =
      `${Words.count(report.ranks, 'rank')} · ${report.target} · ${Words.micros(report.total('time', 'predicted_us'))} predicted · `
      + `${Words.bytes(report.total('arenas', 'total_bytes'))} in arenas · ${report.digest.slice(0, 12)}`;
  }

  #choices() {
    const select = document.getElementById('graph');
    const graphs = this.reports[0].graphs;
    select.replaceChildren(...graphs.map((graph, i) => el('option', {value: i}, `ranks ${Words.ranks(graph.ranks)}`)));
    select.hidden = graphs.length < 2;
    select.addEventListener('change', () => this.#show());
  }

  #groups() {
    const names = new Set(this.graphs.flatMap((graph) =>
      range(0, graph.collectives.count).map((c) => graph.collectives.get('group', c))));
    const select = document.getElementById('filter-group');
    if (!names.has(this.filter.group)) {
      this.filter.group = '';
    }
    select.replaceChildren(el('option', {value: ''}, 'all groups'),
      ...[...names].sort().map((name) => el('option', {value: name}, `group ${name}`)));
    select.value = this.filter.group;
  }

  #controls() {
    const on = (id, event, listener) => document.getElementById(id).addEventListener(event, listener);
    on('x-steps', 'click', () => this.setAxis('steps'));
    on('x-time', 'click', () => this.setAxis('time'));
    on('zoom-in', 'click', () => this.scale(2));
    on('zoom-out', 'click', () => this.scale(0.5));
    on('zoom-fit', 'click', () => this.fit());
    on('fit-offsets', 'click', () => this.#fitOffsets());
    on('theme', 'click', () => this.#toggleTheme());
    on('help', 'click', () => document.getElementById('help-dialog').showModal());
    on('help-close', 'click', () => document.getElementById('help-dialog').close());
    on('search', 'input', (event) => this.search(event.target.value));
    on('search', 'keydown', (event) => {
      if (event.key === 'Enter') {
        this.nextHit(event.shiftKey ? -1 : 1);
      } else if (event.key === 'Escape') {
        this.search('');
        event.target.blur();
      }
    });
    for (const kind of KINDS) {
      on(`filter-role-${kind}`, 'change', (event) => {
        this.filter.kinds[event.target.checked ? 'add' : 'delete'](kind);
        this.#refilter();
      });
    }
    const choose = (id, take) => on(id, 'change', (event) => {
      take(event.target);
      this.#refilter();
    });
    choose('filter-space', ({value}) => (this.filter.space = value));
    choose('filter-size', ({value}) => (this.filter.size = Number(value)));
    choose('filter-group', ({value}) => (this.filter.group = value));
    choose('filter-changed', ({checked}) => (this.filter.changed = checked));
    on('load', 'click', () => document.getElementById('load-file').click());
    on('load-file', 'change', (event) => {
      this.load(event.target.files[0]);
      event.target.value = '';
    });
    on('unload', 'click', () => {
      this.#message('');
      this.reports.length = 1;
      this.#show();
    });
    on('message', 'click', () => this.#message(''));
    document.addEventListener('dragover', (event) => event.preventDefault());
    document.addEventListener('drop', (event) => {
      event.preventDefault();
      this.load(event.dataTransfer.files[0]);
    });
    document.addEventListener('keydown', (event) => this.#key(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#theme());
  }

  #key(event) {
    const typing = event.target.matches?.('input:not([type=checkbox]), select, textarea');
    const dialog = document.getElementById('help-dialog');
    if (typing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const far = event.shiftKey ? 0.5 : 0.1;
    const keys = {
      ArrowLeft: () => this.pan(far),
      ArrowRight: () => this.pan(-far),
      ArrowUp: () => this.#offsets(event.shiftKey, 1.5, far),
      ArrowDown: () => this.#offsets(event.shiftKey, 1 / 1.5, -far),
      '+': () => this.scale(1.5),
      '=': () => this.scale(1.5),
      '-': () => this.scale(1 / 1.5),
      0: () => this.fit(),
      f: () => this.#frameSelection(),
      y: () => this.#fitOffsets(),
      '/': () => document.getElementById('search').focus(),
      Escape: () => {
        this.search('');
        this.select(null);
      },
      n: () => this.nextHit(1),
      N: () => this.nextHit(-1),
      ']': () => this.#nextBuffer(1),
      '[': () => this.#nextBuffer(-1),
      t: () => this.#toggleTheme(),
      x: () => this.setAxis(this.axis === 'steps' ? 'time' : 'steps'),
      '?': () => dialog.showModal(),
    };
    if (Object.hasOwn(keys, event.key)) {
      event.preventDefault();
      keys[event.key]();
    }
  }

  /** Loads a second plan from a file. */
  async load(file) {
    if (!file) {
      return;
    }
    try {
      this.reports[1] = Report.parse(await file.text());
      this.#message('');
      this.#show();
    } catch (error) {
      if (!(error instanceof NoReport)) {
        throw error;
      }
      this.#message(`${file.name} cannot be compared: ${error.message}`);
    }
  }

  #message(text) {
    const message = document.getElementById('message');
    message.hidden = !text;
    message.textContent = text;
  }

  #theme(chosen = document.documentElement.dataset.theme) {
    const dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    this.theme = dark ? 'dark' : 'light';
    this.colours = new Colours(getComputedStyle(document.documentElement));
    this.#maps.forEach((map) => map.draw());
  }

  #toggleTheme() {
    document.documentElement.dataset.theme = this.theme === 'dark' ? 'light' : 'dark';
    this.#theme();
  }

  /* Scales */

  /** What the x axis shows when nothing is zoomed, of both plans. */
  wholeDomain() {
    return this.axis === 'time'
      ? [0, Math.max(...this.graphs.map((graph) => graph.edges[graph.steps]), 1)]
      : [-1, Math.max(...this.graphs.map((graph) => graph.steps)) + 1];
  }

  arenaNames() {
    return [...new Set(this.graphs.flatMap((graph) => graph.arenas.map((arena) => arena.name)))];
  }

  lanes() {
    return Math.max(...this.graphs.map((graph) => graph.streams.length));
  }

  /** How much the y axis of an arena shows, of both plans. */
  arenaBytes(name) {
    const sizes = this.graphs.flatMap((graph) => graph.arenas.filter((a) => a.name === name));
    return 1.06 * Math.max(...sizes.map((arena) => Math.max(arena.bytes, arena.bound)), 1);
  }

  mostLive() {
    return (this.most ??= Math.max(...this.graphs.map((graph) => {
      const [first, ...others] = graph.arenas.map((arena) => arena.profile);
      return first ? d3.max(first, (bytes, i) => bytes + d3.sum(others, (other) => other[i])) : 0;
    })));
  }

  setAxis(axis) {
    this.axis = axis;
    for (const name of ['steps', 'time']) {
      document.getElementById(`x-${name}`).setAttribute('aria-pressed', String(name === axis));
    }
    this.transform = d3.zoomIdentity;
    this.#maps.forEach((map) => map.rescale());
  }

  zoomTo(transform) {
    this.transform = transform;
    this.#maps.forEach((map) => map.zoomed(transform));
  }

  #zoom(change) {
    const [map] = this.#maps;
    change(map.zoom, d3.select(map.node));
    this.zoomTo(d3.zoomTransform(map.node));
  }

  scale(factor) {
    this.#zoom((zoom, node) => zoom.scaleBy(node, factor));
  }

  /** Moves the window by a part of its width. */
  pan(part) {
    const [map] = this.#maps;
    this.#zoom((zoom, node) => zoom.translateBy(node, (part * map.width) / this.transform.k, 0));
  }

  fit() {
    this.#maps.forEach((map) => map.fitY());
    this.zoomTo(d3.zoomIdentity);
  }

  /** Zooms into the offsets of all arenas, or pans them. */
  #offsets(zooms, factor, part) {
    this.#maps.forEach((map) => (zooms ? map.zoomAllY(factor) : map.panAllY(part)));
  }

  #fitOffsets() {
    this.#maps.forEach((map) => map.fitWindow());
  }

  centre(value) {
    const [map] = this.#maps;
    this.#zoom((zoom, node) => zoom.translateTo(node, map.base(value), 0));
  }

  /** Zooms to what is selected. */
  #frameSelection() {
    const map = this.selected && this.#maps[this.selected.plan];
    if (!map) {
      return;
    }
    const [from, to] = this.#extent(this.selected).map((value) => map.base(value));
    const width = map.width - GUTTER - RIGHT;
    const k = Math.min(Math.max(width / (1.3 * Math.max(to - from, 1e-9)), 1), map.zoom.scaleExtent()[1]);
    this.#zoom((zoom, node) => {
      zoom.scaleTo(node, k);
      zoom.translateTo(node, (from + to) / 2, 0);
    });
  }

  /** Where an item lies on the x axis. */
  #extent({plan, kind, row}) {
    const map = this.#maps[plan];
    const graph = this.graphs[plan];
    if (kind === 'buffer') {
      return [map.at[graph.first[row] + 1], map.at[graph.last[row] + 2]];
    }
    const step = kind === 'step' ? row : graph.collectives.get('step', row);
    return this.axis === 'time'
      ? [graph.begin[step], graph.begin[step] + graph.duration[step]]
      : [step, graph.until[step] + 1];
  }

  /* Selection */

  item(kind, id, plan = 0) {
    const graph = this.graphs[plan];
    const row = {
      buffer: () => graph.bufferAt.get(id),
      collective: () => graph.collectiveAt.get(id),
      step: () => (id >= 0 && id < graph.steps ? id : undefined),
    }[kind]?.();
    return row === undefined ? null : {plan, kind, row};
  }

  tableOf({plan, kind}) {
    const graph = this.graphs[plan];
    return {buffer: graph.values, collective: graph.collectives, step: graph.schedule}[kind];
  }

  nameOf(item) {
    return this.tableOf(item).get('name', item.row);
  }

  /** What an item is in one of the plans: itself, or what has its name in the other. */
  itemIn(plan, item) {
    if (item.plan === plan) {
      return item;
    }
    const row = this.tableOf({...item, plan}).names.get(this.nameOf(item));
    return row === undefined ? null : {plan, kind: item.kind, row};
  }

  /**
   * @param reveal whether to move the window to it where it is out of view
   */
  select(item, reveal = false) {
    this.selected = item;
    this.#neighbours = null;
    this.panels.select(item);
    if (item && reveal) {
      const [from, to] = this.#extent(item);
      const [low, high] = this.#maps[item.plan].x.domain();
      if (to < low || from > high) {
        this.centre((from + to) / 2);
      }
    }
    if (item) {
      this.#say(`${this.nameOf(item)} selected`);
    }
    this.#maps.forEach((map) => map.overlay());
  }

  neighboursOf(plan, item) {
    this.#neighbours ??= [];
    return (this.#neighbours[plan] ??= this.#findNeighbours(plan, item));
  }

  #findNeighbours(plan, {kind, row}) {
    const graph = this.graphs[plan];
    return kind === 'buffer' ? graph.flow.ofBuffer(row)
      : kind === 'collective' ? graph.buffersOf(row)
      : graph.flow.ofStep(row);
  }

  #nextBuffer(by) {
    const graph = this.graphs[0];
    const order = range(0, graph.values.count).filter((b) => this.passes[0][b])
      .sort((a, b) => graph.first[a] - graph.first[b] || a - b);
    if (order.length > 0) {
      const current = this.selected?.kind === 'buffer' ? order.indexOf(this.selected.row) : -1;
      const next = current < 0 ? (by > 0 ? 0 : order.length - 1) : (current + by + order.length) % order.length;
      this.select({plan: 0, kind: 'buffer', row: order[next]}, true);
    }
  }

  hover(item, event = null) {
    const same = item?.kind === this.hovered?.kind && item?.row === this.hovered?.row && item?.plan === this.hovered?.plan;
    this.hovered = item;
    const tooltip = document.getElementById('tooltip');
    tooltip.hidden = !item;
    if (item && !same) {
      tooltip.replaceChildren(...this.#tip(item));
    }
    if (item && event) {
      const {width, height} = tooltip.getBoundingClientRect();
      tooltip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - width - 8)}px`;
      tooltip.style.top = `${event.clientY + 18 + height > window.innerHeight
        ? event.clientY - height - 12 : event.clientY + 18}px`;
    }
    this.#maps.forEach((map) => map.overlay());
  }

  #tip(item) {
    const graph = this.graphs[item.plan];
    const table = this.tableOf(item);
    const get = (name) => table.get(name, item.row);
    const lines = {
      buffer: () => [
        `${Words.bytes(graph.bytes[item.row])} · ${get('type') ?? Words.KINDS[get('role')]}`,
        `${get('role')}, ${graph.symmetric[item.row] ? 'symmetric' : 'local'} · ${Words.life(graph, item.row)}`,
        get('use_names')?.length > 0 ? `read by ${shortList(get('use_names'))}` : '',
        get('because'),
        get('source'),
      ],
      collective: () => [
        `${get('kind')} as ${get('variant')} · ${Words.micros(get('predicted_us'))}`,
        `${Words.bytes(get('bytes'))} of each of ${get('ranks')} ranks, group ${get('group')}`,
        get('source'),
      ],
      step: () => [`step ${item.row} · ${Words.micros(get('duration_us'))}`, get('what')],
    }[item.kind]();
    return [el('strong', {}, this.nameOf(item)), ...lines.filter((line) => line).map((line) => el('div', {}, line))];
  }

  /* Search and filters */

  #refilter() {
    this.#passing();
    this.most = null;
    this.panels.lists();
    this.#maps.forEach((map) => map.draw());
  }

  #passing() {
    const {kinds, space, size, group, changed} = this.filter;
    this.passes = this.graphs.map((graph, plan) => {
      const inGroup = group === '' ? null : this.#touchedBy(graph, group);
      const passes = new Uint8Array(graph.values.count);
      for (let b = 0; b < passes.length; b++) {
        passes[b] = kinds.has(graph.values.get('role', b))
          && (space === 'all' || (space === 'symmetric') === (graph.symmetric[b] === 1))
          && graph.bytes[b] >= size
          && (inGroup === null || inGroup.has(b))
          && (!changed || this.difference.changedBuffers[plan].has(b)) ? 1 : 0;
      }
      return passes;
    });
    this.#shown = d3.sum(this.passes[0]);
    this.stepPasses = this.graphs.map(() => null);
    this.#find();
    if (this.query) {
      this.graphs.forEach((graph, plan) => {
        const found = new Set(this.found[plan].buffer);
        const steps = new Set(this.found[plan].step);
        this.found[plan].collective.forEach((row) => steps.add(graph.collectives.get('step', row)));
        this.passes[plan].forEach((pass, b) => (this.passes[plan][b] = pass && found.has(b) ? 1 : 0));
        this.stepPasses[plan] = Uint8Array.from(range(0, graph.steps), (step) => (steps.has(step) ? 1 : 0));
      });
    }
  }

  #touchedBy(graph, group) {
    const touched = new Set();
    for (let c = 0; c < graph.collectives.count; c++) {
      if (graph.collectives.get('group', c) === group) {
        const {from, to} = graph.buffersOf(c);
        from.concat(to).forEach((row) => touched.add(row));
      }
    }
    return touched;
  }

  collectivePasses(row) {
    const graph = this.graphs[0];
    const found = !this.query || this.found[0].collective.includes(row);
    return found && (this.filter.group === '' || graph.collectives.get('group', row) === this.filter.group);
  }

  search(query) {
    const input = document.getElementById('search');
    if (input.value !== query) {
      input.value = query;
    }
    this.query = query.trim().toLowerCase();
    this.hit = -1;
    this.#refilter();
    this.#count();
  }

  /** Finds the words of the query in names, types, kinds, sources and ops. */
  #find() {
    if (!this.query) {
      this.found = [];
      this.hits = [];
      return;
    }
    this.#haystacks ??= this.graphs.map((graph) => ({
      collective: haystack(graph.collectives, ['name', 'kind', 'variant', 'op', 'source', 'operands', 'results']),
      buffer: haystack(graph.values, ['name', 'values', 'type', 'role', 'source', 'because']),
      step: haystack(graph.schedule, ['name', 'what']),
    }));
    const words = this.query.split(/\s+/);
    const rows = (texts) => range(0, texts.length).filter((row) => words.every((word) => texts[row].includes(word)));
    this.found = this.#haystacks.map((texts, plan) => ({
      collective: rows(texts.collective),
      buffer: rows(texts.buffer).filter((row) => this.passes[plan][row]),
      step: rows(texts.step),
    }));
    const computes = (row) => ['op', 'fused'].includes(this.graphs[0].schedule.get('kind', row));
    this.hits = [
      ...this.found[0].collective.map((row) => ({plan: 0, kind: 'collective', row})),
      ...this.found[0].buffer.map((row) => ({plan: 0, kind: 'buffer', row})),
      ...this.found[0].step.filter(computes).map((row) => ({plan: 0, kind: 'step', row})),
    ];
  }

  nextHit(by) {
    if (this.hits.length > 0) {
      this.hit = this.hit < 0 ? (by > 0 ? 0 : this.hits.length - 1) : (this.hit + by + this.hits.length) % this.hits.length;
      this.select(this.hits[this.hit], true);
    }
    this.#count();
  }

  #count() {
    const text = !this.query ? ''
      : this.hits.length === 0 ? 'none'
      : this.hit < 0 ? `${this.hits.length}` : `${this.hit + 1} of ${this.hits.length}`;
    document.getElementById('search-count').textContent = text;
    if (this.query) {
      this.#say(this.hits.length === 0 ? `nothing found for ${this.query}`
        : this.hit < 0 ? `${Words.count(this.hits.length, 'hit')} for ${this.query}`
        : `hit ${this.hit + 1} of ${this.hits.length}: ${this.nameOf(this.hits[this.hit])}`);
    }
  }

  #say(text) {
    document.getElementById('status').textContent = text;
  }

  /* What tests and the console may look at */

  #expose() {
    const page = this;
    const described = (item) => item && {
      kind: item.kind,
      id: item.kind === 'step' ? item.row : page.tableOf(item).get('id', item.row),
      name: page.nameOf(item),
    };
    const map = () => page.#maps[0];
    const state = {
      get ready() { return page.loadMs !== null; },
      get loadMs() { return page.loadMs; },
      get plan() {
        const graph = page.graphs[0];
        return {
          name: graph.report.name, digest: graph.report.digest, ranks: graph.report.ranks,
          ops: graph.report.total('work', 'ops'), steps: graph.steps,
          buffers: graph.values.count, collectives: graph.collectives.count,
        };
      },
      get axis() { return page.axis; },
      get domain() { return map().x.domain(); },
      get fit() { return page.transform.k === 1; },
      get selected() { return described(page.selected); },
      get hovered() { return described(page.hovered); },
      get neighbours() {
        if (!page.selected) {
          return [];
        }
        const {from, to} = page.neighboursOf(page.selected.plan, page.selected);
        return [...new Set([...from, ...to])].map((row) => page.graphs[page.selected.plan].values.get('id', row));
      },
      get query() { return page.query; },
      get hits() { return page.hits.map(described); },
      get hit() { return page.hit; },
      get shown() { return page.#shown; },
      get drawn() { return map().drawn; },
      get frameMs() { return map().frameMs; },
      get frames() { return map().frames; },
      get theme() { return page.theme; },
      get diff() {
        return page.difference && {
          name: page.graphs[1].report.name, digest: page.graphs[1].report.digest, same: page.difference.same,
          collectives: page.difference.collectives.length, values: page.difference.values.length,
        };
      },
      rectOf(kind, id, which = 'a') {
        const plan = which === 'b' ? 1 : 0;
        const item = page.graphs[plan] && page.item(kind, id, plan);
        const rect = item && page.#maps[plan].rect(item);
        if (!rect) {
          return null;
        }
        const {left, top} = page.#maps[plan].node.getBoundingClientRect();
        return {x: rect.x + left, y: rect.y + top, width: rect.width, height: rect.height};
      },
      select(kind, id) { page.select(page.item(kind, id), true); },
    };
    Object.defineProperty(window, 'symplan', {value: Object.freeze(state)});
    const wait = () => {
      if (map().frames > 0) {
        page.loadMs = performance.now();
        document.documentElement.dataset.ready = 'true';
      } else {
        requestAnimationFrame(wait);
      }
    };
    wait();
  }
}

/** The colours of the style sheet, as canvases need them. */
class Colours {
  constructor(style) {
    const of = (name) => style.getPropertyValue(name).trim();
    for (const name of ['ink', 'muted', 'line', 'ground', 'paper', 'dimmed', 'shade']) {
      this[name] = of(`--${name}`);
    }
    this.profile = {symmetric: of('--profile-symmetric'), local: of('--profile-local')};
    this.fills = {};
    this.texts = {};
    this.hatches = {};
    for (const kind of KINDS) {
      const full = of(`--kind-${kind}`);
      this.fills[kind] = [d3.interpolateRgb(of('--ground'), full)(0.5), full];
      this.texts[kind] = d3.lab(full).l > 58 ? '#000' : '#fff';
      this.hatches[kind] = hatch(this.texts[kind]);
    }
    this.steps = {};
    this.stepTexts = {};
    for (const kind of ['op', 'fused', 'start', 'join']) {
      this.steps[kind] = of(`--step-${kind}`);
      this.stepTexts[kind] = d3.lab(this.steps[kind]).l > 58 ? '#000' : '#fff';
    }
  }
}

/** Diagonal lines, which tell symmetric memory apart without colour. */
function hatch(colour) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const context = tile.getContext('2d');
  context.strokeStyle = colour;
  context.globalAlpha = 0.4;
  context.lineWidth = 1.25;
  context.beginPath();
  for (const offset of [-8, 0, 8]) {
    context.moveTo(offset - 1, 9);
    context.lineTo(offset + 9, -1);
  }
  context.stroke();
  return context.createPattern(tile, 'repeat');
}

/** For each row, all that is searched, in small letters. */
function haystack(table, facts) {
  return range(0, table.count).map((row) => facts.map((fact) => table.get(fact, row) ?? '').join(' ').toLowerCase());
}

function shortList(names) {
  return names.length <= 4 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
}

new Page().start();
