/* The state for tests and the console: `window.symplan`. */

function expose(page) {
  const described = (item) => item && {
    kind: item.kind,
    id: item.kind === 'step' ? item.row : page.tableOf(item).get('id', item.row),
    name: page.nameOf(item),
  };
  const map = () => page.maps[0];
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
    get query() { return page.finder.query; },
    get hits() { return page.finder.hits.map(described); },
    get hit() { return page.finder.hit; },
    get shown() { return page.finder.shown; },
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
      const rect = item && page.maps[plan].rect(item);
      if (!rect) {
        return null;
      }
      const {left, top} = page.maps[plan].node.getBoundingClientRect();
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
