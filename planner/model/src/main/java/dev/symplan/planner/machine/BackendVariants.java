package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import java.util.Optional;

/**
 * The variants that a backend supports. A plan for it has no others.
 *
 * @param backend its name
 * @param missing the rows that it does not support, each with the reason: a predicate, such as
 *     {@code "does not implement custom ops"}
 */
public record BackendVariants(String backend, ImmutableMap<VariantSpec, String> missing) {

  /** For plans that are not for a particular backend. */
  public static final BackendVariants ANY = all("");

  /** {@return a backend that carries out all rows} */
  public static BackendVariants all(String backend) {
    return new BackendVariants(backend, ImmutableMap.of());
  }

  /** {@return the same without any row of a variant} */
  public BackendVariants without(Variant variant, String reason) {
    var more = ImmutableMap.<VariantSpec, String>builder().putAll(missing);
    VariantSpec.ofVariant(variant).forEach(spec -> more.put(spec, reason));
    return new BackendVariants(backend, more.buildKeepingLast());
  }

  /** {@return the same without any row that needs NVLink multicast} */
  public BackendVariants withoutMulticast(String reason) {
    var left = this;
    for (var variant : Variant.values()) {
      if (VariantSpec.ofVariant(variant).stream().anyMatch(VariantSpec::needsMulticast)) {
        left = left.without(variant, reason);
      }
    }
    return left;
  }

  /** {@return why a row is missing, for people; empty if it is not} */
  public Optional<String> lack(VariantSpec spec) {
    return Optional.ofNullable(missing.get(spec))
        .map(reason -> "backend %s %s".formatted(backend, reason));
  }

  /** {@return whether there is a row for collectives of a kind} */
  public boolean has(Kind kind) {
    return !missing.keySet().containsAll(VariantSpec.ofKind(kind));
  }
}
