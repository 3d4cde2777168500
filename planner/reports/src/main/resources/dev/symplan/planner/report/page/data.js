/* The report of a plan (docs/report.md), in the form that the page needs. */

/** Rows of facts: cells in columns, and a separate table of the rows that belong to them. */
class Table {
  #columns = new Map();
  #names = null;

  constructor(table) {
    this.count = table.count;
    for (const [name, column] of Object.entries(table.columns)) {
      this.#columns.set(name, column);
    }
    this.below = null;
    this.first = new Int32Array(this.count + 1);
    if (table.rows) {
      this.below = new Table(table.rows);
      this.parent = table.rows.parent;
      for (const parent of this.parent) {
        this.first[parent + 1]++;
      }
      for (let i = 0; i < this.count; i++) {
        this.first[i + 1] += this.first[i];
      }
    }
  }

  static empty() {
    return new Table({count: 0, columns: {}});
  }

  /** Takes the rows of `dump --format json`. */
  static ofRows(rows) {
    return new Table(Table.#columnsOf(rows));
  }

  static #columnsOf(rows) {
    const columns = {title: rows.map((row) => row.title)};
    rows.forEach((row, i) => {
      for (const [name, value] of Object.entries(row.facts ?? {})) {
        (columns[name] ??= new Array(rows.length).fill(null))[i] = value;
      }
    });
    const table = {count: rows.length, columns};
    const below = rows.flatMap((row) => row.rows ?? []);
    if (below.length > 0) {
      const parent = rows.flatMap((row, i) => (row.rows ?? []).map(() => i));
      table.rows = {parent, ...Table.#columnsOf(below)};
    }
    return table;
  }

  /** A fact of a row; null if the row has no such fact. */
  get(name, row) {
    const column = this.#columns.get(name);
    if (column === undefined) {
      return null;
    }
    return Array.isArray(column) ? column[row] : column.of[column.at[row]];
  }

  /** All numbers of a column. */
  numbers(name, missing = -1) {
    const numbers = new Float64Array(this.count);
    for (let i = 0; i < this.count; i++) {
      numbers[i] = this.get(name, i) ?? missing;
    }
    return numbers;
  }

  /** The rows of `below` that belong to a row. */
  children(row) {
    return this.below ? range(this.first[row], this.first[row + 1]) : [];
  }

  /** The first row of each name. */
  get names() {
    if (this.#names === null) {
      this.#names = new Map();
      for (let row = 0; row < this.count; row++) {
        const name = this.get('name', row);
        if (!this.#names.has(name)) {
          this.#names.set(name, row);
        }
      }
    }
    return this.#names;
  }

  /** The rows with a value in a column. */
  where(name, value) {
    return range(0, this.count).filter((row) => this.get(name, row) === value);
  }
}

function range(from, to) {
  return Array.from({length: Math.max(0, to - from)}, (_, i) => from + i);
}

/** The error of a file that is not a report for this page; the message is for people. */
class NoReport extends Error {}

/** A plan: its summary, and what the ranks of each different graph run. */
class Report {
  static VIEWS = ['summary', 'collectives', 'values', 'schedule', 'graph'];

  constructor(json) {
    if (json?.format !== 'symplan-report') {
      throw new NoReport('it is not a plan report; `symplan dump PLAN --format json` writes one');
    }
    if (json.version !== 1) {
      throw new NoReport(`its version is ${json.version}, but this page supports version 1`);
    }
    const views = new Set(json.sections.map((section) => section.view));
    const missing = Report.VIEWS.filter((view) => !views.has(view));
    if (missing.length > 0) {
      throw new NoReport(`the view ${missing.join(', ')} is missing; dump it without --view`);
    }
    this.name = json.name;
    this.target = json.target;
    this.digest = json.digest;
    this.ranks = json.ranks;
    const tables = json.sections.map((section) => ({
      view: section.view,
      ranks: section.ranks,
      table: section.table ? new Table(section.table) : Table.ofRows(section.rows),
    }));
    this.summary = tables.find((t) => t.view === 'summary').table;
    this.peak = tables.find((t) => t.view === 'peak')?.table ?? Table.empty();
    this.graphs = tables
      .filter((t) => t.view === 'values')
      .map(({ranks}) => {
        const of = (view) => tables.find((t) => t.view === view && String(t.ranks) === String(ranks)).table;
        return new PlanGraph(this, ranks, of);
      });
  }

  /** Reads a page of `dump --format html` or the JSON of `dump --format json`. */
  static parse(text) {
    const begin = /<script type="application\/json" id="first">/.exec(text);
    let json = text;
    if (begin) {
      const from = begin.index + begin[0].length;
      json = text.slice(from, text.indexOf('<\/script>', from));
    }
    try {
      return new Report(JSON.parse(json));
    } catch (error) {
      throw error instanceof SyntaxError ? new NoReport('it is neither a page nor JSON') : error;
    }
  }

  /** A fact of one of the summary's rows. */
  total(row, fact) {
    const [at] = this.summary.where('title', row);
    return at === undefined ? null : this.summary.get(fact, at);
  }
}

/** What the ranks of one graph run and where its values live. */
class PlanGraph {
  #flow = null;

  constructor(report, ranks, table) {
    this.report = report;
    this.ranks = ranks;
    this.collectives = table('collectives');
    this.values = table('values');
    this.schedule = table('schedule');
    this.ops = table('graph');

    this.first = this.values.numbers('first');
    this.last = this.values.numbers('last');
    this.offset = this.values.numbers('offset');
    this.bytes = this.values.numbers('bytes');
    this.bufferAt = indexOf(this.values.numbers('id'));
    this.symmetric = Uint8Array.from(range(0, this.values.count), (i) => this.values.get('symmetric', i) ? 1 : 0);

    this.steps = this.schedule.count;
    this.begin = this.schedule.numbers('begin_us', 0);
    this.duration = this.schedule.numbers('duration_us', 0);
    this.parts = this.#parts();
    this.edges = this.#edges();
    this.streams = this.#streams();
    this.collectiveAt = indexOf(this.collectives.numbers('id'));
    this.arenas = this.#arenas();
  }

  /** The graphs of a program of several, by their first steps; none for a single graph. */
  #parts() {
    const begins = range(0, this.steps).filter((step) => this.schedule.get('graph', step) !== null);
    if (begins.length === 0) {
      return [];
    }
    const names = [this.report.name, ...begins.map((step) => this.schedule.get('graph', step))];
    const firsts = [0, ...begins, this.steps];
    return names.map((name, i) => ({name, first: firsts[i], end: firsts[i + 1]}));
  }

  /** When the compute stream reaches each step, in µs, and when everything is done. */
  #edges() {
    const edges = new Float64Array(this.steps + 1);
    let all = 0;
    for (let i = 0; i < this.steps; i++) {
      const end = this.begin[i] + this.duration[i];
      const onCompute = this.schedule.get('stream', i) === 'compute';
      edges[i + 1] = onCompute ? Math.max(edges[i], end) : edges[i];
      all = Math.max(all, end);
    }
    edges[this.steps] = all;
    return edges;
  }

  /** For each stream, its steps, and the step up to which each is shown. */
  #streams() {
    const streams = new Map();
    for (let i = 0; i < this.steps; i++) {
      const name = this.schedule.get('stream', i);
      if (!streams.has(name)) {
        streams.set(name, []);
      }
      streams.get(name).push(i);
    }
    const done = this.collectives.numbers('done_step');
    const doneAt = new Map(range(0, this.collectives.count).map((c) => [this.collectives.get('id', c), done[c]]));
    this.until = new Float64Array(this.steps);
    for (const [name, steps] of streams) {
      steps.forEach((step, i) => {
        // Steps of a stream run one after the other, so each ends before the next one of the stream begins.
        const next = i + 1 < steps.length ? steps[i + 1] - 1 : this.steps - 1;
        this.until[step] = name === 'compute' ? step : Math.min(doneAt.get(this.schedule.get('collective', step)), next);
      });
    }
    return [...streams].map(([name, steps]) => ({name, steps}));
  }

  #arenas() {
    const arenas = [];
    for (const row of this.report.summary.where('title', 'peak')) {
      if (String(this.report.summary.get('ranks', row)) !== String(this.ranks)) {
        continue;
      }
      const fact = (name) => this.report.summary.get(name, row);
      const name = fact('arena');
      const buffers = Int32Array.from(this.values.where('arena', name));
      buffers.sort((a, b) => this.first[a] - this.first[b] || a - b);
      arenas.push({
        name,
        bytes: fact('bytes'),
        bound: fact('bound_bytes'),
        live: fact('live_bytes'),
        peakStep: fact('peak_step'),
        fragmentation: fact('fragmentation_percent'),
        buffers,
        profile: this.#profile(buffers),
      });
    }
    return arenas;
  }

  /** The bytes that are live at each step, from the one before the first to the one after the last. */
  #profile(buffers) {
    const live = new Float64Array(this.steps + 3);
    for (const b of buffers) {
      live[this.first[b] + 1] += this.bytes[b];
      live[this.last[b] + 2] -= this.bytes[b];
    }
    for (let i = 1; i < live.length; i++) {
      live[i] += live[i - 1];
    }
    return live;
  }

  /** The buffers of an arena that are live at a step, the largest first. */
  liveAt(arena, step) {
    return Array.from(arena.buffers)
      .filter((b) => this.first[b] <= step && this.last[b] >= step)
      .sort((a, b) => this.bytes[b] - this.bytes[a] || a - b);
  }

  stepName(step) {
    return `${step}: ${this.schedule.get('name', step)}`;
  }

  /** The variants of a collective, chosen or not, and why. */
  verdicts(collective) {
    const rows = this.collectives.below;
    return this.collectives.children(collective)
      .filter((row) => rows.get('verdict', row) !== null)
      .map((row) => ({
        variant: rows.get('title', row),
        eligible: rows.get('eligible', row),
        chosen: rows.get('chosen', row),
        reason: rows.get('verdict', row),
        detail: rows.get('detail', row),
        threshold: rows.get('threshold', row) ?? '',
        staging: rows.get('staging_us', row) ?? 0,
        micros: (rows.get('transfer_us', row) ?? 0) + (rows.get('staging_us', row) ?? 0),
      }));
  }

  /** The tensors of a collective, and why each is where it is. */
  tensors(collective) {
    const rows = this.collectives.below;
    return this.collectives.children(collective)
      .filter((row) => rows.get('verdict', row) === null)
      .map((row) => ({title: rows.get('title', row), because: rows.get('because', row) ?? ''}));
  }

  slowest() {
    let slowest = -1;
    for (let c = 0; c < this.collectives.count; c++) {
      if (slowest < 0 || this.collectives.get('predicted_us', c) > this.collectives.get('predicted_us', slowest)) {
        slowest = c;
      }
    }
    return slowest;
  }

  /** The buffers that a collective reads and writes, as rows. */
  buffersOf(collective) {
    return {
      from: this.#rowsOf(this.collectives.get('operand_buffers', collective)),
      to: this.#rowsOf(this.collectives.get('result_buffers', collective)),
    };
  }

  #rowsOf(ids) {
    return [...new Set(ids)].map((id) => this.bufferAt.get(id)).filter((row) => row !== undefined);
  }

  get flow() {
    return (this.#flow ??= new Flow(this));
  }
}

/** The graph: the buffers that the ops of a buffer or step read, and those that they write. */
class Flow {
  #graph;
  #ops;
  #operands;
  #bufferOf = new Map();
  #producerOf = new Map();
  #readersOf = new Map();
  #valuesIn = new Map();
  #opsAt = new Map();

  constructor(graph) {
    this.#graph = graph;
    this.#ops = graph.ops;
    const values = this.#ops.below ?? Table.empty();
    this.#operands = range(0, this.#ops.count).map((op) => this.#ops.get('operands', op) ?? []);
    for (let v = 0; v < values.count; v++) {
      const id = values.get('value', v);
      const buffer = graph.bufferAt.get(values.get('buffer', v)) ?? -1;
      this.#bufferOf.set(id, buffer);
      this.#producerOf.set(id, this.#ops.parent[v]);
      if (buffer >= 0) {
        append(this.#valuesIn, buffer, id);
      }
    }
    this.#operands.forEach((operands, op) => operands.forEach((id) => append(this.#readersOf, id, op)));
    for (let op = 0; op < this.#ops.count; op++) {
      append(this.#opsAt, this.#ops.get('step', op) ?? -1, op);
    }
  }

  /** Of a buffer: the buffers that its writers read, and those that its readers write. */
  ofBuffer(buffer) {
    const values = this.#valuesIn.get(buffer) ?? [];
    const from = this.#reach(values.map((id) => this.#producerOf.get(id)), true);
    const to = this.#reach(values.flatMap((id) => this.#readersOf.get(id) ?? []), false);
    from.delete(buffer);
    to.delete(buffer);
    return {from: [...from], to: [...to]};
  }

  /** Of a step: the buffers that it reads and writes. */
  ofStep(step) {
    const ops = this.#opsAt.get(step) ?? [];
    return {from: [...this.#reach(ops, true)], to: [...this.#reach(ops, false)]};
  }

  /** Continues through values without memory: those between fused ops. */
  #reach(ops, back) {
    const found = new Set();
    const seen = new Set(ops);
    const left = [...seen];
    while (left.length > 0) {
      const op = left.pop();
      for (const id of back ? this.#operands[op] : this.#resultsOf(op)) {
        const buffer = this.#bufferOf.get(id) ?? -1;
        if (buffer >= 0) {
          found.add(buffer);
          continue;
        }
        const further = back ? [this.#producerOf.get(id)] : this.#readersOf.get(id) ?? [];
        for (const next of further) {
          if (next !== undefined && !seen.has(next)) {
            seen.add(next);
            left.push(next);
          }
        }
      }
    }
    return found;
  }

  #resultsOf(op) {
    return this.#ops.children(op).map((value) => this.#ops.below.get('value', value));
  }
}

function append(lists, key, item) {
  const list = lists.get(key);
  if (list) {
    list.push(item);
  } else {
    lists.set(key, [item]);
  }
}

function indexOf(ids) {
  const index = new Map();
  ids.forEach((id, row) => index.set(id, row));
  return index;
}
