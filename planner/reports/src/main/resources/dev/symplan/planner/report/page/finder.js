/* Search and filters: which buffers, collectives and steps are shown. */

class Finder {
  #page;
  #haystacks = null;

  constructor(page) {
    this.#page = page;
    this.filter = {kinds: new Set(KINDS), space: 'all', size: 0, group: '', changed: false};
    this.query = '';
    this.hits = [];
    this.hit = -1;
    this.found = [];
    this.passes = [];
    this.stepPasses = [];
    this.shown = 0;
  }

  /** Starts anew after a change of plans or of their graph. */
  reset() {
    this.#haystacks = null;
    this.filter.changed &&= this.#page.graphs.length > 1;
    this.refilter();
  }

  refilter() {
    this.hit = -1;
    this.#passing();
    this.#page.filtered();
    this.#count();
  }

  #passing() {
    const {kinds, space, size, group, changed} = this.filter;
    this.passes = this.#page.graphs.map((graph, plan) => {
      const inGroup = group === '' ? null : this.#touchedBy(graph, group);
      const passes = new Uint8Array(graph.values.count);
      for (let b = 0; b < passes.length; b++) {
        passes[b] = kinds.has(graph.values.get('role', b))
          && (space === 'all' || (space === 'symmetric') === (graph.symmetric[b] === 1))
          && graph.bytes[b] >= size
          && (inGroup === null || inGroup.has(b))
          && (!changed || this.#page.difference.changedBuffers[plan].has(b)) ? 1 : 0;
      }
      return passes;
    });
    this.shown = d3.sum(this.passes[0]);
    this.stepPasses = this.#page.graphs.map(() => null);
    this.#find();
    if (this.query) {
      this.#page.graphs.forEach((graph, plan) => {
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
    const graph = this.#page.graphs[0];
    const found = !this.query || this.found[0].collective.includes(row);
    return found && (this.filter.group === '' || graph.collectives.get('group', row) === this.filter.group);
  }

  search(query) {
    const input = document.getElementById('search');
    if (input.value !== query) {
      input.value = query;
    }
    this.query = query.trim().toLowerCase();
    this.refilter();
  }

  /** Finds the words of the query in names, types, kinds, sources and ops. */
  #find() {
    if (!this.query) {
      this.found = [];
      this.hits = [];
      return;
    }
    this.#haystacks ??= this.#page.graphs.map((graph) => ({
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
    const computes = (row) => ['op', 'fused'].includes(this.#page.graphs[0].schedule.get('kind', row));
    this.hits = [
      ...this.found[0].collective.map((row) => ({plan: 0, kind: 'collective', row})),
      ...this.found[0].buffer.map((row) => ({plan: 0, kind: 'buffer', row})),
      ...this.found[0].step.filter(computes).map((row) => ({plan: 0, kind: 'step', row})),
    ];
  }

  next(by) {
    if (this.hits.length > 0) {
      this.hit = this.hit < 0 ? (by > 0 ? 0 : this.hits.length - 1) : (this.hit + by + this.hits.length) % this.hits.length;
      this.#page.select(this.hits[this.hit], true);
    }
    this.#count();
  }

  #count() {
    const text = !this.query ? ''
      : this.hits.length === 0 ? 'none'
      : this.hit < 0 ? `${this.hits.length}` : `${this.hit + 1} of ${this.hits.length}`;
    document.getElementById('search-count').textContent = text;
    if (this.query) {
      this.#page.say(this.hits.length === 0 ? `nothing found for ${this.query}`
        : this.hit < 0 ? `${Words.count(this.hits.length, 'hit')} for ${this.query}`
        : `hit ${this.hit + 1} of ${this.hits.length}: ${this.#page.nameOf(this.hits[this.hit])}`);
    }
  }
}

/** For each row, the text to search, in lower case. */
function haystack(table, facts) {
  return range(0, table.count).map((row) => facts.map((fact) => table.get(fact, row) ?? '').join(' ').toLowerCase());
}
