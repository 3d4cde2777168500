package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import java.util.List;
import java.util.Optional;

/**
 * The definition of an op before its schema text is parsed; tables of ops hold these.
 *
 * <p>Names are checked against the schema by {@link #resolve}, not before, so that a table of
 * hundreds of ops costs nothing at start.
 */
public record OpSpec(
    String schemaText,
    Optional<InferRule> rule,
    Optional<FlopCount> flops,
    OpTraits traits,
    ImmutableList<String> symmMemArgs,
    ImmutableList<String> symmMemResults,
    Optional<CollectiveSpec> collective) {

  /** An op known only by its schema. */
  public static OpSpec of(String schemaText) {
    return new OpSpec(
        schemaText,
        Optional.empty(),
        Optional.empty(),
        OpTraits.NONE,
        ImmutableList.of(),
        ImmutableList.of(),
        Optional.empty());
  }

  /** The same op with another schema. */
  public OpSpec schema(String newText) {
    return new OpSpec(newText, rule, flops, traits, symmMemArgs, symmMemResults, collective);
  }

  public OpSpec rule(InferRule newRule) {
    return new OpSpec(
        schemaText, Optional.of(newRule), flops, traits, symmMemArgs, symmMemResults, collective);
  }

  public OpSpec flops(FlopCount count) {
    return new OpSpec(
        schemaText, rule, Optional.of(count), traits, symmMemArgs, symmMemResults, collective);
  }

  public OpSpec traits(OpTrait... newTraits) {
    return new OpSpec(
        schemaText,
        rule,
        flops,
        OpTraits.NONE.with(newTraits),
        symmMemArgs,
        symmMemResults,
        collective);
  }

  /** Parameters whose tensors must be in symmetric memory. */
  public OpSpec symmMemArgs(List<String> params) {
    return new OpSpec(
        schemaText, rule, flops, traits, ImmutableList.copyOf(params), symmMemResults, collective);
  }

  /** Results that must be in symmetric memory, by position ({@code "0"}) or name. */
  public OpSpec symmMemResults(List<String> results) {
    return new OpSpec(
        schemaText, rule, flops, traits, symmMemArgs, ImmutableList.copyOf(results), collective);
  }

  public OpSpec collective(CollectiveSpec spec) {
    return new OpSpec(
        schemaText, rule, flops, traits, symmMemArgs, symmMemResults, Optional.of(spec));
  }

  /**
   * {@return the name, read off the schema text without parsing the rest}
   *
   * @throws IllegalArgumentException when the text does not start with a name
   */
  public OpName name() {
    int paren = schemaText.indexOf('(');
    return OpName.parse((paren < 0 ? schemaText : schemaText.substring(0, paren)).strip());
  }

  /**
   * {@return the op}
   *
   * @throws IllegalArgumentException when the schema is malformed or a registered name is not in it
   */
  public OpDef resolve() {
    var schema = SchemaParser.parse(schemaText);
    for (var param : symmMemArgs) {
      checkTensorParam(schema, param);
    }
    for (var result : symmMemResults) {
      checkTensorResult(schema, result);
    }
    var spec = collective.or(this::customCollective).map(given -> given.in(schema));
    spec.ifPresent(known -> checkTensorParam(schema, known.operand()));
    return new OpDef(
        schema,
        ImmutableSet.copyOf(symmMemArgs),
        ImmutableSet.copyOf(symmMemResults),
        spec,
        rule,
        flops,
        rule.isPresent() ? traits : traits.with(OpTrait.OPAQUE));
  }

  private static void checkTensorParam(OpSchema schema, String param) {
    var type = schema.params().get(schema.indexOf(param)).type();
    if (!type.holdsTensors()) {
      throw new IllegalArgumentException(
          "%s: '%s' is of type %s; only tensors can be in symmetric memory"
              .formatted(schema.name(), param, type));
    }
  }

  private static void checkTensorResult(OpSchema schema, String result) {
    var results = schema.results();
    for (int i = 0; i < results.size(); i++) {
      if ((result.equals(Integer.toString(i)) || result.equals(results.get(i).name()))
          && results.get(i).type().holdsTensors()) {
        return;
      }
    }
    throw new IllegalArgumentException(
        "%s has no tensor result '%s'; it gives %s, named by position from 0 or by name"
            .formatted(schema.name(), result, results.size()));
  }

  /** An op with symmetric arguments communicates. */
  private Optional<CollectiveSpec> customCollective() {
    var custom = CollectiveSpec.of(CollectiveSpec.Kind.CUSTOM);
    if (!symmMemArgs.isEmpty()) {
      return Optional.of(custom.with(CollectiveSpec.Role.OPERAND, symmMemArgs.getFirst()));
    }
    return symmMemResults.isEmpty() ? Optional.empty() : Optional.of(custom);
  }
}
