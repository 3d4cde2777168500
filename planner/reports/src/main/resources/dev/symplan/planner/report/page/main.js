/* The page: what it shows of each plan, and everything that changes that. */

class Page {
  #neighbours = new WeakMap();
  #offsetAxes = new Map();

  constructor() {
    this.reports = [];
    this.graphs = [];
    this.axis = 'steps';
    this.transform = d3.zoomIdentity;
    this.selected = null;
    this.hovered = null;
    this.difference = null;
    this.loadMs = null;
    this.maps = [];
    this.finder = new Finder(this);
  }

  start() {
    this.showTheme();
    const embedded = (id) => document.getElementById(id).textContent;
    this.reports = [new Report(JSON.parse(embedded('first')))];
    if (embedded('second').trim()) {
      this.reports.push(new Report(JSON.parse(embedded('second'))));
    }
    this.panels = new Panels(this);
    this.controls = new Controls(this);
    this.#choices();
    this.#show();
    expose(this);
  }

  /** Shows the chosen graph of each plan. */
  #show() {
    const at = Number(document.getElementById('graph').value);
    this.graphs = this.reports.map((report) => report.graphs[Math.min(at, report.graphs.length - 1)]);
    this.selected = null;
    this.hovered = null;
    this.#offsetAxes.clear();
    this.live = null;
    this.transform = d3.zoomIdentity;
    this.difference = this.graphs.length > 1 ? new Difference(...this.graphs) : null;
    this.#groups();
    const main = document.getElementById('maps');
    main.replaceChildren();
    main.classList.toggle('two', this.graphs.length > 1);
    document.getElementById('unload').hidden = this.graphs.length < 2;
    document.getElementById('changed').hidden = this.graphs.length < 2;
    this.maps = this.graphs.map((graph, plan) => {
      const frame = el('div', {class: 'frame'});
      const caption = el('div', {class: 'caption'}, this.graphs.length > 1 ? this.#caption(graph.report, plan) : '');
      main.append(el('section', {class: 'plan', 'aria-label': graph.report.name}, caption, frame));
      return new PlanMap(this, plan, graph, frame, plan === 0 ? 'map' : 'map-b');
    });
    this.#heading();
    this.finder.reset();
    this.panels.answers();
    this.panels.differences(this.difference);
    this.maps.forEach((map) => map.resize());
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
    select.replaceChildren(...graphs.map((graph, i) => el('option', {value: i}, Words.ranks(graph.ranks))));
    select.hidden = graphs.length < 2;
    select.addEventListener('change', () => this.#show());
  }

  #groups() {
    const names = new Set(this.graphs.flatMap((graph) =>
      range(0, graph.collectives.count).map((c) => graph.collectives.get('group', c))));
    const select = document.getElementById('filter-group');
    if (!names.has(this.finder.filter.group)) {
      this.finder.filter.group = '';
    }
    select.replaceChildren(el('option', {value: ''}, 'all groups'),
      ...[...names].sort().map((name) => el('option', {value: name}, `group ${name}`)));
    select.value = this.finder.filter.group;
  }

  unload() {
    this.reports.length = 1;
    this.#show();
  }

  /** Loads a second plan from a file. */
  async load(file) {
    if (!file) {
      return;
    }
    try {
      this.reports[1] = Report.parse(await file.text());
      this.message('');
      this.#show();
    } catch (error) {
      if (!(error instanceof NoReport)) {
        throw error;
      }
      this.message(`${file.name} cannot be compared: ${error.message}`);
    }
  }

  message(text) {
    const message = document.getElementById('message');
    message.hidden = !text;
    message.textContent = text;
  }

  showTheme(chosen = document.documentElement.dataset.theme) {
    const dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    this.theme = dark ? 'dark' : 'light';
    this.colours = new Colours(getComputedStyle(document.documentElement));
    this.maps.forEach((map) => map.draw());
  }

  toggleTheme() {
    document.documentElement.dataset.theme = this.theme === 'dark' ? 'light' : 'dark';
    this.showTheme();
  }

  /* Scales */

  /** The range of the x axis without zoom, for both plans. */
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

  /** The range of an arena's y axis, for both plans. */
  arenaBytes(name) {
    return 1.06 * this.#arenaSize(name);
  }

  #arenaSize(name) {
    const sizes = this.graphs.flatMap((graph) => graph.arenas.filter((a) => a.name === name));
    return Math.max(...sizes.map((arena) => Math.max(arena.bytes, arena.bound)), 1);
  }

  /** The axis of an arena's offsets, the same for both plans. */
  offsetAxis(name) {
    if (!this.#offsetAxes.has(name)) {
      const plans = this.graphs.map((graph) => graph.arenas.filter((arena) => arena.name === name)
        .flatMap((arena) => Array.from(arena.buffers, (b) => ({offset: graph.offset[b], end: graph.offset[b] + graph.bytes[b]}))));
      this.#offsetAxes.set(name, new Offsets(this.#arenaSize(name), plans));
    }
    return this.#offsetAxes.get(name);
  }

  /** From live bytes to a part of the height: by their root where few steps have most of them. */
  liveScale() {
    if (!this.live) {
      const totals = this.graphs.flatMap((graph) => {
        const [first, ...others] = graph.arenas.map((arena) => arena.profile);
        return first ? Array.from(first, (bytes, i) => bytes + d3.sum(others, (other) => other[i])) : [0];
      });
      const most = d3.max(totals) || 1;
      const uneven = d3.quantile(totals, 0.95) < most / 4;
      this.live = {uneven, at: uneven ? (bytes) => Math.sqrt(bytes / most) : (bytes) => bytes / most};
    }
    return this.live;
  }

  setAxis(axis) {
    this.axis = axis;
    for (const name of ['steps', 'time']) {
      document.getElementById(`x-${name}`).setAttribute('aria-pressed', String(name === axis));
    }
    this.transform = d3.zoomIdentity;
    this.maps.forEach((map) => map.rescale());
  }

  zoomTo(transform) {
    this.transform = transform;
    this.maps.forEach((map) => map.zoomed(transform));
  }

  #zoom(change) {
    const [map] = this.maps;
    change(map.zoom, d3.select(map.node));
    this.zoomTo(d3.zoomTransform(map.node));
  }

  scale(factor) {
    this.#zoom((zoom, node) => zoom.scaleBy(node, factor));
  }

  /** Moves the window by a part of its width. */
  pan(part) {
    const [map] = this.maps;
    this.#zoom((zoom, node) => zoom.translateBy(node, (part * map.width) / this.transform.k, 0));
  }

  fit() {
    this.maps.forEach((map) => map.fitY());
    this.zoomTo(d3.zoomIdentity);
  }

  /** Zooms into the offsets of all arenas, or pans them. */
  offsets(zooms, factor, part) {
    this.maps.forEach((map) => (zooms ? map.zoomAllY(factor) : map.panAllY(part)));
  }

  fitOffsets() {
    this.maps.forEach((map) => map.fitWindow());
  }

  centre(value) {
    const [map] = this.maps;
    this.#zoom((zoom, node) => zoom.translateTo(node, map.base(value), 0));
  }

  /** Zooms to what is selected. */
  frameSelection() {
    const map = this.selected && this.maps[this.selected.plan];
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
    const map = this.maps[plan];
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

  /** The item in one of the plans: itself, or the item with its name in the other plan. */
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
    this.panels.select(item);
    if (item && reveal) {
      const [from, to] = this.#extent(item);
      const [low, high] = this.maps[item.plan].x.domain();
      if (to < low || from > high) {
        this.centre((from + to) / 2);
      }
    }
    if (item) {
      this.say(`${this.nameOf(item)} selected`);
    }
    this.maps.forEach((map) => map.mark());
  }

  /** The buffers that an item is made from and used for, as rows of one of the plans. */
  neighboursOf(plan, item) {
    if (!this.#neighbours.has(item)) {
      this.#neighbours.set(item, []);
    }
    return (this.#neighbours.get(item)[plan] ??= this.#findNeighbours(plan, this.itemIn(plan, item)));
  }

  #findNeighbours(plan, {kind, row}) {
    const graph = this.graphs[plan];
    return kind === 'buffer' ? graph.flow.ofBuffer(row)
      : kind === 'collective' ? graph.buffersOf(row)
      : graph.flow.ofStep(row);
  }

  nextBuffer(by) {
    const graph = this.graphs[0];
    const order = range(0, graph.values.count).filter((b) => this.finder.passes[0][b])
      .sort((a, b) => graph.first[a] - graph.first[b] || a - b);
    if (order.length > 0) {
      const current = this.selected?.kind === 'buffer' ? order.indexOf(this.selected.row) : -1;
      const next = current < 0 ? (by > 0 ? 0 : order.length - 1) : (current + by + order.length) % order.length;
      this.select({plan: 0, kind: 'buffer', row: order[next]}, true);
    }
  }

  hover(item, event = null) {
    const {hovered} = this;
    const same = item?.kind === hovered?.kind && item?.row === hovered?.row && item?.plan === hovered?.plan;
    this.hovered = same ? hovered : item;
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
    this.maps.forEach((map) => map.mark());
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
        `${Words.bytes(get('bytes'))} on each of ${get('ranks')} ranks, group ${get('group')}`,
        get('source'),
      ],
      step: () => [`step ${item.row} · ${Words.micros(get('duration_us'))}`, get('what')],
    }[item.kind]();
    return [el('strong', {}, this.nameOf(item)), ...lines.filter((line) => line).map((line) => el('div', {}, line))];
  }

  /** Updates the page after a change of filters or search. */
  filtered() {
    this.panels.lists();
    this.maps.forEach((map) => map.draw());
  }

  say(text) {
    document.getElementById('status').textContent = text;
  }

}

function shortList(names) {
  return names.length <= 4 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
}

new Page().start();
