package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The arguments of a kernel that needs nothing but memory: a pointer to each part. */
final class MemoryArguments {
  private final Map<Address, Integer> numbers = new LinkedHashMap<>();
  private final List<KernelArgument.Memory> words = new ArrayList<>();

  /** {@return the argument for an address, which is one from now on} */
  String pointer(KernelArgument.Memory memory) {
    int number = numbers.computeIfAbsent(memory.address(), _ -> numbers.size());
    if (number == words.size()) {
      words.add(memory);
    } else if (memory.bytes() > words.get(number).bytes()) {
      words.set(number, memory);
    }
    return "args.memory[%s]".formatted(number);
  }

  /** {@return an element of a type, by its distance from the address, in elements} */
  String element(String type, KernelArgument.Memory memory, String offset) {
    return element(type, pointer(memory), offset);
  }

  /** {@return the same from another pointer} */
  static String element(String type, String pointer, String offset) {
    return "((%s*)%s)[%s]".formatted(type, pointer, offset);
  }

  /** {@return the struct of all arguments that were asked for} */
  String struct() {
    return "\nstruct Args {\n" + member() + "};\n";
  }

  /** {@return the declaration of them, among other arguments} */
  String member() {
    return "  char* memory[%s];\n".formatted(Math.max(1, words.size()));
  }

  /** {@return them, in their order} */
  ImmutableList<KernelArgument> words() {
    return ImmutableList.copyOf(words);
  }

  /**
   * {@return a launch with these arguments}
   *
   * @param text of the kernel, with the struct
   * @param most blocks at the most
   */
  DeviceStep.Launch launch(
      StreamKind stream, String text, long blocks, int most, int threads, String label) {
    return new DeviceStep.Launch(
        stream,
        new Kernel(text),
        Math.clamp(blocks, 1, most),
        threads,
        ImmutableList.copyOf(words),
        label);
  }
}
