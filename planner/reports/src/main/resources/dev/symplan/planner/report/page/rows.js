/* Lists. */

const ROW = 28;

/** A list of any length. Only its visible rows exist as elements. */
class Rows {
  #items = [];
  #selected = -1;

  /**
   * @param render makes the children of one item's element
   * @param pick is called with an item that somebody chose
   */
  constructor(element, render, pick) {
    this.element = element;
    this.render = render;
    this.inner = el('div', {class: 'rows-inner'});
    element.replaceChildren(this.inner);
    element.addEventListener('scroll', () => this.show());
    element.addEventListener('click', (event) => {
      const row = event.target.closest('[data-index]');
      if (row) {
        pick(this.#items[Number(row.dataset.index)]);
      }
    });
    element.addEventListener('keydown', (event) => {
      const by = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10}[event.key];
      if (by && this.#items.length > 0) {
        event.preventDefault();
        event.stopPropagation();
        pick(this.#items[Math.min(Math.max(this.#selected + by, 0), this.#items.length - 1)]);
      }
    });
    new ResizeObserver(() => this.show()).observe(element);
  }

  set(items) {
    this.#items = items;
    this.inner.style.height = `${items.length * ROW}px`;
    this.show();
  }

  select(matches, reveal) {
    this.#selected = this.#items.findIndex(matches);
    if (reveal && this.#selected >= 0) {
      const top = this.#selected * ROW;
      const {scrollTop, clientHeight} = this.element;
      if (top < scrollTop || top + ROW > scrollTop + clientHeight) {
        this.element.scrollTop = top - clientHeight / 2;
      }
    }
    this.show();
  }

  show() {
    const {scrollTop, clientHeight} = this.element;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - 4);
    const to = Math.min(this.#items.length, Math.ceil((scrollTop + clientHeight) / ROW) + 4);
    const rows = [];
    for (let i = from; i < to; i++) {
      const item = this.#items[i];
      const row = el('div', {
        class: 'row', role: 'option', 'data-index': i, 'data-kind': item.kind, 'data-id': item.id,
        id: `${this.element.id}-${i}`, 'aria-selected': String(i === this.#selected),
        'aria-posinset': i + 1, 'aria-setsize': this.#items.length,
      }, this.render(item));
      row.style.top = `${i * ROW}px`;
      rows.push(row);
    }
    this.inner.replaceChildren(...rows);
    if (this.#selected >= from && this.#selected < to) {
      this.element.setAttribute('aria-activedescendant', `${this.element.id}-${this.#selected}`);
    } else {
      this.element.removeAttribute('aria-activedescendant');
    }
  }
}
