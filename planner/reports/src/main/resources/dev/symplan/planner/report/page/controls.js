/* Buttons, keys and files that are dropped. */

class Controls {
  #page;

  constructor(page) {
    this.#page = page;
    const {finder} = page;
    const on = (id, event, listener) => document.getElementById(id).addEventListener(event, listener);
    on('x-steps', 'click', () => page.setAxis('steps'));
    on('x-time', 'click', () => page.setAxis('time'));
    on('zoom-in', 'click', () => page.scale(2));
    on('zoom-out', 'click', () => page.scale(0.5));
    on('zoom-fit', 'click', () => page.fit());
    on('fit-offsets', 'click', () => page.fitOffsets());
    on('theme', 'click', () => page.toggleTheme());
    on('help', 'click', () => document.getElementById('help-dialog').showModal());
    on('help-close', 'click', () => document.getElementById('help-dialog').close());
    on('search', 'input', (event) => finder.search(event.target.value));
    on('search', 'keydown', (event) => {
      if (event.key === 'Enter') {
        finder.next(event.shiftKey ? -1 : 1);
      } else if (event.key === 'Escape') {
        finder.search('');
        event.target.blur();
      }
    });
    for (const kind of KINDS) {
      on(`filter-role-${kind}`, 'change', (event) => {
        finder.filter.kinds[event.target.checked ? 'add' : 'delete'](kind);
        finder.refilter();
      });
    }
    const choose = (id, take) => on(id, 'change', (event) => {
      take(event.target);
      finder.refilter();
    });
    choose('filter-space', ({value}) => (finder.filter.space = value));
    choose('filter-size', ({value}) => (finder.filter.size = Number(value)));
    choose('filter-group', ({value}) => (finder.filter.group = value));
    choose('filter-changed', ({checked}) => (finder.filter.changed = checked));
    on('load', 'click', () => document.getElementById('load-file').click());
    on('load-file', 'change', (event) => {
      page.load(event.target.files[0]);
      event.target.value = '';
    });
    on('unload', 'click', () => {
      page.message('');
      page.unload();
    });
    on('message', 'click', () => page.message(''));
    document.addEventListener('dragover', (event) => event.preventDefault());
    document.addEventListener('drop', (event) => {
      event.preventDefault();
      page.load(event.dataTransfer.files[0]);
    });
    document.addEventListener('keydown', (event) => this.#key(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => page.showTheme());
  }

  #key(event) {
    const page = this.#page;
    const {finder} = page;
    const typing = event.target.matches?.('input:not([type=checkbox]), select, textarea');
    const dialog = document.getElementById('help-dialog');
    if (typing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const far = event.shiftKey ? 0.5 : 0.1;
    const keys = {
      ArrowLeft: () => page.pan(far),
      ArrowRight: () => page.pan(-far),
      ArrowUp: () => page.offsets(event.shiftKey, 1.5, far),
      ArrowDown: () => page.offsets(event.shiftKey, 1 / 1.5, -far),
      '+': () => page.scale(1.5),
      '=': () => page.scale(1.5),
      '-': () => page.scale(1 / 1.5),
      0: () => page.fit(),
      f: () => page.frameSelection(),
      y: () => page.fitOffsets(),
      '/': () => document.getElementById('search').focus(),
      Escape: () => {
        finder.search('');
        page.select(null);
      },
      n: () => finder.next(1),
      N: () => finder.next(-1),
      ']': () => page.nextBuffer(1),
      '[': () => page.nextBuffer(-1),
      t: () => page.toggleTheme(),
      x: () => page.setAxis(page.axis === 'steps' ? 'time' : 'steps'),
      '?': () => dialog.showModal(),
    };
    if (Object.hasOwn(keys, event.key)) {
      event.preventDefault();
      keys[event.key]();
    }
  }
}
