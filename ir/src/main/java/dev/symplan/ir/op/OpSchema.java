package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import java.util.OptionalInt;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The parameters and results of an op, in PyTorch's schema language (torch/csrc/jit/frontend,
 * aten/src/ATen/native/README.md).
 *
 * <p>{@code aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]}
 */
public final class OpSchema {
  private final OpName name;
  private final ImmutableList<Param> params;
  private final ImmutableList<SchemaResult> results;
  private final boolean parenthesizedResult;
  private final ImmutableMap<String, Integer> index;
  private final boolean mutates;
  private final boolean unbounded;

  /**
   * @param parenthesizedResult whether a single result is written in parentheses, as it must be
   *     when it has a name
   * @throws IllegalArgumentException when two parameters have the same name
   */
  public OpSchema(
      OpName name,
      ImmutableList<Param> params,
      ImmutableList<SchemaResult> results,
      boolean parenthesizedResult) {
    this.name = name;
    this.params = params;
    this.results = results;
    this.parenthesizedResult = parenthesizedResult;
    var builder = ImmutableMap.<String, Integer>builder();
    for (int i = 0; i < params.size(); i++) {
      builder.put(params.get(i).name(), i);
    }
    this.index = builder.buildOrThrow();
    this.mutates = params.stream().anyMatch(param -> param.alias().write());
    this.unbounded =
        params.stream().anyMatch(param -> param.alias().isAnything())
            || results.stream().anyMatch(result -> result.alias().isAnything());
  }

  public OpName name() {
    return name;
  }

  public ImmutableList<Param> params() {
    return params;
  }

  public ImmutableList<SchemaResult> results() {
    return results;
  }

  public boolean hasParam(String param) {
    return index.containsKey(param);
  }

  /**
   * {@return the position of a parameter}
   *
   * @throws IllegalArgumentException when there is none of this name
   */
  public int indexOf(String param) {
    @Nullable Integer position = index.get(param);
    if (position == null) {
      throw new IllegalArgumentException(
          "%s has no parameter '%s'; it has %s".formatted(name, param, index.keySet()));
    }
    return position;
  }

  /** {@return whether the op writes one of its arguments} */
  public boolean mutates() {
    return mutates;
  }

  /** {@return whether a parameter or result may be a view of anything afterwards} */
  public boolean isUnbounded() {
    return unbounded;
  }

  /**
   * {@return the parameter that a result is, as {@code Tensor(a!) self} is the result {@code
   * Tensor(a!)}} Views with other sizes or strides count as the same here.
   */
  public OptionalInt returned(int result) {
    if (result >= results.size() || !results.get(result).alias().write()) {
      return OptionalInt.empty();
    }
    var sets = results.get(result).alias().before();
    var found =
        IntStream.range(0, params.size())
            .filter(
                i -> params.get(i).alias().write() && params.get(i).alias().before().equals(sets))
            .toArray();
    return found.length == 1 ? OptionalInt.of(found[0]) : OptionalInt.empty();
  }

  /** {@return the schema with other alias annotations, made from the types and the old ones} */
  OpSchema withAliases(
      BiFunction<SchemaType, AliasInfo, AliasInfo> ofParam,
      BiFunction<SchemaType, AliasInfo, AliasInfo> ofResult) {
    return new OpSchema(
        name,
        params.stream()
            .map(p -> p.withAlias(ofParam.apply(p.type(), p.alias())))
            .collect(ImmutableList.toImmutableList()),
        results.stream()
            .map(r -> new SchemaResult(r.name(), r.type(), ofResult.apply(r.type(), r.alias())))
            .collect(ImmutableList.toImmutableList()),
        parenthesizedResult);
  }

  /** {@return the schema as PyTorch writes it; parsing it gives an equal schema} */
  @Override
  public String toString() {
    var out = new StringBuilder(name.toString()).append('(');
    boolean star = false;
    for (int i = 0; i < params.size(); i++) {
      var param = params.get(i);
      out.append(i > 0 ? ", " : "");
      if (param.keywordOnly() && !star) {
        star = true;
        out.append("*, ");
      }
      out.append(param);
    }
    out.append(") -> ");
    if (results.size() == 1 && !parenthesizedResult) {
      return out.append(results.getFirst()).toString();
    }
    return out.append(
            results.stream().map(Object::toString).collect(Collectors.joining(", ", "(", ")")))
        .toString();
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof OpSchema that && toString().equals(that.toString());
  }

  @Override
  public int hashCode() {
    return toString().hashCode();
  }
}
