/* The panels beside the maps: answers, lists, differences, and details of the selection. */

class Panels {
  #page;
  #collectives;
  #values;
  #sort = {collectives: 'time', values: 'size'};

  constructor(page) {
    this.#page = page;
    for (const tab of this.#tabs()) {
      tab.addEventListener('click', () => this.open(tab.dataset.panel));
      tab.addEventListener('keydown', (event) => {
        const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (by) {
          event.stopPropagation();
          const tabs = this.#tabs().filter((other) => !other.hidden);
          const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
          next.focus();
          this.open(next.dataset.panel);
        }
      });
    }
    for (const button of document.querySelectorAll('[data-sort]')) {
      button.addEventListener('click', () => {
        const [list, by] = button.dataset.sort.split(' ');
        this.#sort[list] = by;
        this.lists();
      });
    }
    const pick = (item) => page.select(item, true);
    this.#collectives = new Rows(document.getElementById('collectives'), (item) => this.#collectiveRow(item), pick);
    this.#values = new Rows(document.getElementById('values'), (item) => this.#valueRow(item), pick);
    document.getElementById('details-close').addEventListener('click', () => page.select(null));
  }

  #tabs() {
    return [...document.querySelectorAll('[role=tab]')];
  }

  open(panel) {
    for (const tab of this.#tabs()) {
      const active = tab.dataset.panel === panel;
      tab.setAttribute('aria-selected', String(active));
      tab.tabIndex = active ? 0 : -1;
      document.getElementById(`panel-${tab.dataset.panel}`).hidden = !active;
    }
  }

  /** Fills both lists with the rows that pass the filters and match the search. */
  lists() {
    const page = this.#page;
    const graph = page.graphs[0];
    const collator = new Intl.Collator('en', {numeric: true});
    const names = (table) => (a, b) => collator.compare(table.get('name', a), table.get('name', b));
    const numbers = (column, sign) => (a, b) => sign * (column[a] - column[b]) || a - b;
    const {collectives, values} = graph;
    const orders = {
      collectives: {
        time: numbers(collectives.numbers('predicted_us', 0), -1),
        size: numbers(collectives.numbers('bytes'), -1),
        step: numbers(collectives.numbers('step'), 1),
        name: names(collectives),
      },
      values: {
        size: numbers(graph.bytes, -1),
        step: numbers(graph.first, 1),
        name: names(values),
      },
    };
    const item = (kind, table) => (row) => ({plan: 0, kind, row, id: table.get('id', row)});
    const listed = range(0, collectives.count).filter((row) => page.finder.collectivePasses(row));
    const shown = range(0, values.count).filter((row) => page.finder.passes[0][row]);
    this.longest = Math.max(...collectives.numbers('predicted_us', 0), 1e-9);
    this.#collectives.set(listed.sort(orders.collectives[this.#sort.collectives]).map(item('collective', collectives)));
    this.#values.set(shown.sort(orders.values[this.#sort.values]).map(item('buffer', values)));
    for (const button of document.querySelectorAll('[data-sort]')) {
      const [list, by] = button.dataset.sort.split(' ');
      button.setAttribute('aria-pressed', String(this.#sort[list] === by));
    }
    document.getElementById('count-collectives').textContent = listed.length;
    document.getElementById('count-values').textContent = shown.length;
    this.select(page.selected, false);
  }

  #collectiveRow({row}) {
    const table = this.#page.graphs[0].collectives;
    const micros = table.get('predicted_us', row);
    return [
      el('span', {class: 'name', title: table.get('name', row)}, table.get('name', row)),
      el('span', {class: 'variant'}, table.get('variant', row)),
      el('span', {class: 'size'}, Words.bytes(table.get('bytes', row))),
      el('span', {class: 'time'}, bar(micros / this.longest), el('span', {}, Words.micros(micros))),
    ];
  }

  #valueRow({row}) {
    const graph = this.#page.graphs[0];
    return [
      this.#swatch(graph, row),
      el('span', {class: 'name', title: graph.values.get('name', row)}, graph.values.get('name', row)),
      el('span', {class: 'size'}, Words.bytes(graph.bytes[row])),
      el('span', {class: 'steps'}, graph.first[row] < 0 && graph.last[row] >= graph.steps
        ? 'all steps'
        : `${Math.max(graph.first[row], 0)}–${Math.min(graph.last[row], graph.steps - 1)}`),
    ];
  }

  #swatch(graph, row) {
    const role = graph.values.get('role', row);
    const peers = graph.symmetric[row] ? 'symmetric' : 'local';
    return el('span', {class: `swatch ${role} ${peers}`, title: `${role}, ${peers}`});
  }

  select(item, reveal = true) {
    const own = item && this.#page.itemIn(0, item);
    const matches = (kind) => (other) => own !== null && own.kind === kind && own.row === other.row;
    this.#collectives.select(matches('collective'), reveal);
    this.#values.select(matches('buffer'), reveal);
    this.#details(item);
  }

  /** A button that leads to a buffer, collective or step. */
  #link(plan, kind, row, text = null) {
    const graph = this.#page.graphs[plan];
    const table = {buffer: graph.values, collective: graph.collectives, step: graph.schedule}[kind];
    const id = kind === 'step' ? row : table.get('id', row);
    return el('button', {
      class: `link ${kind}`, 'data-kind': kind, 'data-id': id,
      onclick: () => this.#page.select({plan, kind, row}, true),
    }, kind === 'buffer' ? this.#swatch(graph, row) : null, text ?? table.get('name', row));
  }

  /** Variants as bars, the fastest first, each that cannot run with its reason. */
  #verdicts(plan, row) {
    const verdicts = this.#page.graphs[plan].verdicts(row);
    const able = verdicts.filter((v) => v.eligible).sort((a, b) => a.micros - b.micros);
    const longest = Math.max(...able.map((v) => v.micros), 1e-9);
    const chosen = verdicts.find((v) => v.chosen);
    const details = new Set(able.map((v) => v.detail));
    const rows = able.map((v) => {
      const percent = chosen ? Math.round(100 * (v.micros / chosen.micros - 1)) : 0;
      const words = [
        v.chosen ? v.reason : percent === 0 ? 'about as fast' : `${Math.abs(percent)} % ${percent > 0 ? 'slower' : 'faster'}`,
        v.threshold,
        v.staging > 0 ? `${Words.micros(v.staging)} of it for copies` : '',
        details.size > 1 ? v.detail : '',
      ];
      return el('tr', {class: v.chosen ? 'chosen' : null, 'data-variant': v.variant},
        el('th', {scope: 'row'}, v.variant),
        el('td', {class: 'time'}, bar(v.micros / longest), el('span', {}, Words.micros(v.micros))),
        el('td', {}, words.filter((word) => word).join('; ')));
    });
    const unable = verdicts.filter((v) => !v.eligible).map((v) =>
      el('tr', {class: 'unable', 'data-variant': v.variant},
        el('th', {scope: 'row'}, v.variant), el('td', {colspan: 2}, `cannot: ${v.detail}`)));
    const [detail] = details;
    return el('div', {}, el('table', {class: 'verdicts'}, el('tbody', {}, rows, unable)),
      details.size === 1 && detail ? el('p', {class: 'muted'}, `These times are ${detail}.`) : null);
  }

  /** How a collective could be improved. */
  #better(plan, row) {
    const better = this.#page.graphs[plan].collectives.get('better', row) ?? [];
    return better.length === 0 ? null
      : el('div', {class: 'better'}, el('h3', {}, 'How to improve this'), better.map((words) => el('p', {}, words)));
  }

  /** Answers to the questions that people come with. */
  answers() {
    const page = this.#page;
    const graph = page.graphs[0];
    const report = graph.report;
    const panel = document.getElementById('panel-overview');
    panel.replaceChildren(
      this.#about(report, graph),
      this.#slowest(graph),
      this.#peak(graph),
      this.#lower(report));
  }

  #about(report, graph) {
    const fact = (title, ...text) => [el('dt', {}, title), el('dd', {}, ...text)];
    const collectives = report.summary.where('title', 'work').flatMap((row) =>
      report.summary.children(row).map((child) =>
        `${report.summary.below.get('count', child)} × ${report.summary.below.get('title', child).replace(' ', ' as ')}`));
    const copies = report.total('work', 'copies');
    return el('section', {class: 'card', 'data-testid': 'about'}, el('dl', {},
      fact('time', `${Words.micros(report.total('time', 'predicted_us'))} predicted, `
        + `${Words.micros(report.total('time', 'collectives_us'))} exposed communication`),
      fact('memory', `${Words.bytes(report.total('arenas', 'total_bytes'))} in arenas `
        + `(at least ${Words.bytes(report.total('arenas', 'total_bound_bytes'))} for any placement), ${Words.bytes(report.total('arenas', 'external_bytes'))} of caller memory`),
      fact('work', `${Words.count(report.total('work', 'ops'), 'op')} in ${Words.count(graph.steps, 'step')}`),
      collectives.length > 0 ? fact('collectives', collectives.join(', ')) : [],
      fact('copies', copies > 0
        ? `${copies} for collectives, of ${Words.bytes(report.total('work', 'copied_bytes'))}` : 'none for collectives')));
  }

  #slowest(graph) {
    const row = graph.slowest();
    const card = (...children) => el('section', {class: 'card', 'data-testid': 'answer-slowest'},
      el('h3', {}, 'Which collective is the slowest, and why this variant?'), ...children);
    if (row < 0) {
      return card(el('p', {}, 'The plan has no collectives.'));
    }
    const table = graph.collectives;
    return card(
      el('p', {}, this.#link(0, 'collective', row), ` · ${table.get('kind', row)} of ${Words.bytes(table.get('bytes', row))} `
        + `in group ${table.get('group', row)}, runs as `, el('strong', {}, table.get('variant', row)), ': ',
      Words.micros(table.get('predicted_us', row))),
      this.#verdicts(0, row),
      this.#better(0, row));
  }

  #peak(graph) {
    const card = el('section', {class: 'card', 'data-testid': 'answer-peak'}, el('h3', {}, 'What makes up the peak?'));
    for (const arena of graph.arenas) {
      const live = graph.liveAt(arena, arena.peakStep);
      const because = this.#becauseAtPeak(graph, arena);
      const step = arena.peakStep >= 0 && arena.peakStep < graph.steps
        ? ['at step ', this.#link(0, 'step', arena.peakStep, graph.stepName(arena.peakStep))]
        : [Words.when(graph, arena.peakStep)];
      const rest = live.slice(8);
      card.append(
        el('p', {}, el('strong', {}, `${arena.name} arena: ${Words.bytes(arena.live)}`), ' live ', ...step),
        el('table', {class: 'live'}, el('tbody', {},
          live.slice(0, 8).map((row) => el('tr', {},
            el('td', {class: 'time'}, bar(graph.bytes[row] / graph.bytes[live[0]]), el('span', {}, Words.bytes(graph.bytes[row]))),
            el('td', {}, this.#link(0, 'buffer', row), el('div', {class: 'muted'},
              because.get(graph.values.get('id', row)) ?? Words.life(graph, row))))),
          rest.length > 0 ? el('tr', {}, el('td', {colspan: 2},
            `and ${Words.count(rest.length, 'smaller one')}, ${Words.bytes(d3.sum(rest, (row) => graph.bytes[row]))} together`)) : [])));
    }
    return card;
  }

  #becauseAtPeak(graph, arena) {
    const {peak} = graph.report;
    const because = new Map();
    for (const row of peak.where('arena', arena.name)) {
      if (String(peak.get('ranks', row)) === String(graph.ranks)) {
        for (const child of peak.children(row)) {
          because.set(peak.below.get('id', child), peak.below.get('because', child));
        }
      }
    }
    return because;
  }

  #lower(report) {
    const card = (...children) => el('section', {class: 'card', 'data-testid': 'answer-lower'},
      el('h3', {}, 'What would lower it?'), ...children);
    const {peak} = report;
    const advised = range(0, peak.count).find((row) => peak.get('title', row).startsWith('advice'));
    if (advised === undefined) {
      return card(el('p', {}, 'No changes were tried: this page was made from a plan file, or with ',
        el('code', {}, '--no-advice'), '. To try some: ', el('code', {}, 'symplan dump GRAPH --format html'), '.'));
    }
    const advice = peak.children(advised);
    const {below} = peak;
    return card(
      el('p', {class: 'muted'}, peak.get('title', advised).replace('advice: ', '')),
      el('table', {class: 'advice'}, el('tbody', {}, advice.map((row) => {
        const slower = below.get('slower_us', row);
        return el('tr', {},
          el('th', {scope: 'row'}, `−${Words.bytes(below.get('saved_bytes', row))}`),
          el('td', {}, below.get('advice', row), el('br'), el('code', {}, below.get('flags', row)), ' · ',
            Math.abs(slower) < 0.05 ? 'as fast' : `${Words.micros(Math.abs(slower))} ${slower > 0 ? 'slower' : 'faster'}`));
      }))));
  }

  #details(item) {
    const box = document.getElementById('details');
    box.hidden = !item;
    if (!item) {
      return;
    }
    const body = document.getElementById('details-body');
    const {plan, kind, row} = item;
    const content = {
      buffer: () => this.#buffer(plan, row),
      collective: () => this.#collective(plan, row),
      step: () => this.#step(plan, row),
    }[kind]();
    body.replaceChildren(...content);
    body.scrollTop = 0;
  }

  #head(plan, what, name) {
    const side = this.#page.graphs[1] ? ` · ${plan === 0 ? 'left' : 'right'} plan` : '';
    document.getElementById('details-name').textContent = name;
    document.getElementById('details-kind').textContent = what + side;
  }

  #facts(facts) {
    return el('dl', {}, facts.filter(([, text]) => text !== null && text !== '' && String(text) !== '')
      .map(([title, ...text]) => [el('dt', {}, title), el('dd', {}, ...text)]));
  }

  #links(plan, rows) {
    const most = 24;
    const links = rows.slice(0, most).flatMap((row) => [this.#link(plan, 'buffer', row), ' ']);
    return rows.length === 0 ? '' : el('span', {class: 'links'}, links,
      rows.length > most ? `and ${rows.length - most} more` : '');
  }

  #buffer(plan, row) {
    const graph = this.#page.graphs[plan];
    const {values} = graph;
    const get = (name) => values.get(name, row);
    this.#head(plan, Words.KINDS[get('role')], get('name'));
    const flow = graph.flow.ofBuffer(row);
    const times = get('use_times') ?? [];
    const uses = (get('use_names') ?? []).slice(0, 40).flatMap((name, i) =>
      [this.#link(plan, 'step', times[i], `${times[i]}: ${name}`), ' ']);
    const others = (get('values') ?? []).filter((name) => name !== get('name'));
    const collective = range(0, graph.collectives.count).filter((c) => {
      const {from, to} = graph.buffersOf(c);
      return from.includes(row) || to.includes(row);
    });
    return [this.#facts([
      ['size', `${Words.bytes(graph.bytes[row])}${get('type') ? ` · ${get('type')}` : ''}`],
      ['location', Words.address(graph, row)],
      ['reached', Words.space(graph, row)],
      ['lives', Words.life(graph, row)],
      ['because', get('because')],
      ['source', get('source')],
      ['also holds', others.slice(0, 12).join(', ') + (others.length > 12 ? ` and ${others.length - 12} more` : '')],
      ['read in step', uses.length > 0 ? el('span', {class: 'links'}, uses, times.length > 40 ? `and ${times.length - 40} more` : '') : ''],
      ['collectives', collective.length > 0
        ? el('span', {class: 'links'}, collective.slice(0, 24).flatMap((c) => [this.#link(plan, 'collective', c), ' '])) : ''],
      ['made from', this.#links(plan, flow.from)],
      ['used for', this.#links(plan, flow.to)],
    ])];
  }

  #collective(plan, row) {
    const graph = this.#page.graphs[plan];
    const get = (name) => graph.collectives.get(name, row);
    this.#head(plan, `${get('kind')} as ${get('variant')}`, get('name'));
    const {from, to} = graph.buffersOf(row);
    const overlap = graph.schedule.get('overlap_us', get('step'));
    return [
      this.#facts([
        ['takes', `${Words.micros(get('predicted_us'))} predicted`],
        ['moves', `${Words.bytes(get('bytes'))} per rank, ${Words.bytes(get('link_bytes'))} over the busier link direction`],
        ['group', `${get('group')}, ${Words.count(get('ranks'), 'rank')}`],
      ]),
      el('h3', {}, 'Variants'),
      this.#verdicts(plan, row),
      this.#better(plan, row) ?? '',
      this.#facts([
        ...graph.tensors(row).map(({title, because}) => [title.split(' ')[0], `${title.split(' ').slice(1).join(' ')}: ${because}`]),
        ['step', this.#link(plan, 'step', get('step'), graph.stepName(get('step')))],
        ['stream', get('stream') === 'compute' ? 'compute: no overlap'
          : `${get('stream')}, until step ${get('done_step')}${overlap ? `; compute runs beside it for ${Words.micros(overlap)}` : ''}`],
        ['copies', get('copied_bytes') > 0 ? Words.bytes(get('copied_bytes')) : 'none'],
        ['barriers', `before: ${get('start_barrier')}; after: ${get('end_barrier')}`],
        ['adds', get('numerics')],
        ['source', get('source')],
        ['reads', this.#links(plan, from)],
        ['writes', this.#links(plan, to)],
      ]),
    ];
  }

  #step(plan, row) {
    const graph = this.#page.graphs[plan];
    const {schedule} = graph;
    const get = (name) => schedule.get(name, row);
    const kinds = {op: 'op', fused: 'fused ops', start: 'collective', join: 'wait'};
    this.#head(plan, `step ${row}: ${kinds[get('kind')]}`, get('name'));
    const flow = graph.flow.ofStep(row);
    const collective = get('collective') === null ? undefined : graph.collectiveAt.get(get('collective'));
    const ops = graph.ops.where('step', row);
    return [this.#facts([
      ['runs', get('what')],
      ['ops', ops.length > 1 ? ops.map((op) => `${graph.ops.get('op', op)} → ${graph.ops.get('title', op)}`).join(', ') : ''],
      ['stream', get('stream')],
      ['begins', `${Words.micros(get('begin_us'))} after the start, predicted`],
      ['takes', `${Words.micros(get('duration_us'))} predicted`],
      ['collective', collective === undefined ? '' : this.#link(plan, 'collective', collective)],
      ['source', [...new Set(ops.map((op) => graph.ops.get('source', op)))].slice(0, 6).join(', ')],
      ['reads', this.#links(plan, flow.from)],
      ['writes', this.#links(plan, flow.to)],
    ])];
  }

  /** The differences between the plans. */
  differences(difference) {
    const tab = document.getElementById('tab-diff');
    const wasHidden = tab.hidden;
    tab.hidden = !difference;
    if (!difference) {
      if (tab.getAttribute('aria-selected') === 'true') {
        this.open('overview');
      }
      return;
    }
    const table = (rows, render) => el('table', {class: 'differences'}, el('tbody', {}, rows.map(render)));
    const change = (row) => [el('td', {}, row.from), el('td', {class: 'arrow'}, '→'), el('td', {}, row.to)];
    const heads = [...difference.plan, ...difference.memory, ...difference.time];
    const name = (kind, row) => row.a !== undefined && row.a >= 0 ? this.#link(0, kind, row.a, row.name)
      : row.b !== undefined && row.b >= 0 ? this.#link(1, kind, row.b, row.name) : row.name;
    const most = 500;
    const panel = document.getElementById('panel-diff');
    const section = (title, ...content) => el('section', {class: 'card'}, el('h3', {}, title), ...content);
    panel.replaceChildren(
      ...(difference.same ? [section('No difference', el('p', {}, 'Both files contain the same plan.'))]
        : difference.nothing ? [section('Offsets', el('p', {}, 'Only the offsets differ.'))] : []),
      ...(heads.length === 0 ? [] : [section('Plan, memory and time', table(heads, (row) => el('tr', {},
        el('th', {scope: 'row'}, row.title), change(row), el('td', {class: row.less ? 'better' : null}, row.by ?? ''))))]),
      ...(difference.collectives.length === 0 ? [] : [
        section(`${Words.count(difference.collectives.length, 'difference')} in collectives`,
          table(difference.collectives.slice(0, most), (row) => el('tr', {'data-name': row.name},
            el('th', {scope: 'row'}, name('collective', row)), change(row), el('td', {}, row.why))))]),
      ...(difference.values.length === 0 ? [] : [
        section(`${Words.count(difference.values.length, 'value')} moved or resized`,
          table(difference.values.slice(0, most), (row) => el('tr', {'data-name': row.name},
            el('th', {scope: 'row'}, name('buffer', row)), change(row))),
          difference.values.length > most ? el('p', {class: 'muted'}, `and ${difference.values.length - most} more`) : '')]));
    if (wasHidden) {
      this.open('diff');
    }
  }
}
