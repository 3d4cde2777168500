package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.ImmutableLists;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import java.util.Optional;

/**
 * An op, as the registry defined it when a graph was built.
 *
 * @param symmMemArgs parameters whose tensors must be in symmetric memory
 * @param symmMemResults results that must be, by position ({@code "0"}) or name
 * @param rule absent if only annotations give the result types
 * @param flops absent if memory traffic alone decides how long the op takes
 */
public record OpDef(
    OpSchema schema,
    ImmutableSet<String> symmMemArgs,
    ImmutableSet<String> symmMemResults,
    Optional<CollectiveSpec> collective,
    Optional<InferRule> rule,
    Optional<FlopCount> flops,
    OpTraits traits) {

  /** An op without a rule; its annotated types and its schema are enough to plan it. */
  public static OpDef opaque(OpSchema schema) {
    return new OpDef(
        schema,
        ImmutableSet.of(),
        ImmutableSet.of(),
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        OpTraits.NONE.with(OpTrait.OPAQUE));
  }

  public OpName name() {
    return schema.name();
  }

  /**
   * {@return this functional collective, with its operand and result in symmetric memory where
   * another form of it is registered to have them there}
   */
  public OpDef demandingAs(OpDef form) {
    boolean operand = form.symmMemArgs.contains(form.collective.orElseThrow().operand());
    boolean result = !form.symmMemResults.isEmpty() || form.symmMemArgs.size() > (operand ? 1 : 0);
    if (!operand && !result) {
      return this;
    }
    return new OpDef(
        schema,
        operand ? ImmutableSet.of(collective.orElseThrow().operand()) : ImmutableSet.of(),
        result ? ImmutableSet.of("0") : ImmutableSet.of(),
        collective,
        rule,
        flops,
        traits);
  }

  public boolean has(OpTrait trait) {
    return traits.contains(trait);
  }

  /** {@return whether running the op may do more than give results} */
  public boolean hasEffect() {
    return has(OpTrait.SIDE_EFFECT) || has(OpTrait.OPAQUE) || schema.mutates();
  }

  /**
   * {@return whether the op may do anything: it has no rule, and its schema lets a parameter or
   * result be a view of anything afterwards} Such an op may also touch hidden state: peers, random
   * generators, the size of a storage.
   */
  public boolean isUnbounded() {
    return rule.isEmpty() && schema.isUnbounded();
  }

  /** {@return whether no op may move across this one, nor a collective run beside it} */
  public boolean isFence() {
    return isUnbounded() || has(OpTrait.BORDER);
  }

  /**
   * {@return the results of the op for these arguments; absent if there is no rule}
   *
   * @throws OpTypeException when they do not fit
   */
  public Optional<ImmutableList<OpResult>> infer(ImmutableList<Arg> args) {
    var call = new OpCall(this, args);
    call.collective().ifPresent(CollectiveCall::check);
    var inferred = rule.map(r -> ImmutableList.copyOf(r.infer(call)));
    if (has(OpTrait.HOST_COPY) || has(OpTrait.HOST_COPY_END)) {
      return inferred;
    }
    var inHost = inHost(args);
    return inHost.isEmpty() ? inferred : Optional.of(viewsOf(inHost, inferred));
  }

  /** {@return the tensors among arguments that are in the host's memory} */
  private static ImmutableList<Value> inHost(ImmutableList<Arg> args) {
    for (var arg : args) {
      if (isAnyInHost(arg)) {
        return args.stream()
            .flatMap(one -> one.operands().stream())
            .filter(OpDef::isInHost)
            .collect(ImmutableList.toImmutableList());
      }
    }
    return ImmutableList.of();
  }

  private static boolean isAnyInHost(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) -> isInHost(value);
      case Arg.Seq(ImmutableList<Arg> items) -> {
        for (var item : items) {
          if (isAnyInHost(item)) {
            yield true;
          }
        }
        yield false;
      }
      case Arg.Literal _ -> false;
    };
  }

  private static boolean isInHost(Value value) {
    return value.type() instanceof TensorType tensor && tensor.space() == MemorySpace.HOST;
  }

  /** A view of what is in the host's memory is there, too; nothing else can read that. */
  private ImmutableList<OpResult> viewsOf(
      ImmutableList<Value> inHost, Optional<ImmutableList<OpResult>> inferred) {
    boolean views =
        inferred.isPresent()
            && !schema.mutates()
            && !has(OpTrait.SIDE_EFFECT)
            && inferred.get().stream()
                .allMatch(result -> result.view().filter(v -> inHost.contains(v.of())).isPresent());
    if (!views) {
      throw new OpTypeException(
          "'%s' is in the host's memory".formatted(inHost.getFirst().name()),
          "only views and symplan::reload read what is there");
    }
    return ImmutableLists.map(
        inferred.get(),
        result -> result.withType(((TensorType) result.type()).withSpace(MemorySpace.HOST)));
  }
}
