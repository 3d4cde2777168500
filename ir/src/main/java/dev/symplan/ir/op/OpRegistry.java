package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import java.util.Comparator;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The ops that graphs may use. Thread-safe.
 *
 * <p>A graph file that declares ops reads them into a {@linkplain #child() child} of its own. What
 * a graph holds is the definition as it was when the graph was built: later registrations do not
 * change it.
 */
public final class OpRegistry {
  private final @Nullable OpRegistry parent;
  private final ConcurrentMap<OpName, Entry> entries = new ConcurrentHashMap<>();

  private OpRegistry(@Nullable OpRegistry parent) {
    this.parent = parent;
  }

  /** {@return a registry of these ops} Their schemas are read when first asked for. */
  public static OpRegistry of(Stream<OpSpec> specs) {
    var registry = new OpRegistry(null);
    specs.forEach(spec -> registry.entries.put(spec.name(), new Entry(spec)));
    return registry;
  }

  /** {@return an empty registry that falls back to this one} */
  public OpRegistry child() {
    return new OpRegistry(this);
  }

  public Optional<OpDef> find(OpName name) {
    return Optional.ofNullable(entry(name)).map(Entry::def);
  }

  private @Nullable Entry entry(OpName name) {
    @Nullable Entry own = entries.get(name);
    return own == null && parent != null ? parent.entry(name) : own;
  }

  /**
   * {@return the op of this name, as {@code aten::mm} or {@code aten::add.Tensor}}
   *
   * @throws IllegalArgumentException when none exists
   */
  public OpDef get(String name) {
    return find(OpName.parse(name))
        .orElseThrow(() -> new IllegalArgumentException("no op " + name));
  }

  /** {@return every name, sorted; those of the parent too} */
  public ImmutableList<OpName> names() {
    var own = entries.keySet().stream();
    var all = parent == null ? own : Stream.concat(own, parent.names().stream());
    return all.distinct()
        .sorted(Comparator.comparing(OpName::toString))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the overloads of {@code ns::name}, sorted} */
  public ImmutableList<OpName> overloads(String base) {
    return names().stream()
        .filter(name -> name.base().equals(base))
        .collect(ImmutableList.toImmutableList());
  }

  /**
   * Adds an op.
   *
   * @throws IllegalArgumentException when the spec is wrong, or the name is taken in this registry
   */
  public Registration define(OpSpec spec) {
    var entry = new Entry(spec);
    entry.def();
    var name = spec.name();
    if (entries.putIfAbsent(name, entry) != null) {
      throw new IllegalArgumentException(name + " is already defined");
    }
    return () -> entries.remove(name, entry);
  }

  /**
   * Replaces the definition of an op for this registry, not for its parent; {@link
   * Registration#close} restores it.
   *
   * @throws IllegalArgumentException when the new spec is wrong or the op does not exist
   */
  Registration replace(OpName name, UnaryOperator<OpSpec> change) {
    @Nullable Entry own = entries.get(name);
    @Nullable Entry old = entry(name);
    if (old == null) {
      throw new IllegalArgumentException("no op " + name + " to register for");
    }
    var changed = new Entry(change.apply(old.spec));
    changed.def();
    boolean done =
        own == null
            ? entries.putIfAbsent(name, changed) == null
            : entries.replace(name, own, changed);
    if (!done) {
      throw new IllegalArgumentException(name + " was changed by another thread");
    }
    return () -> {
      if (own == null) {
        entries.remove(name, changed);
      } else {
        entries.replace(name, changed, own);
      }
    };
  }

  /** A spec, and its definition once it was first requested. */
  private static final class Entry {
    private final OpSpec spec;
    private volatile @Nullable OpDef def;

    Entry(OpSpec spec) {
      this.spec = spec;
    }

    OpDef def() {
      @Nullable OpDef known = def;
      if (known == null) {
        known = spec.resolve();
        def = known;
      }
      return known;
    }
  }

  /** A handle that undoes a registration. */
  @FunctionalInterface
  public interface Registration extends AutoCloseable {
    /** Deregisters; further calls do nothing. */
    @Override
    void close();
  }
}
