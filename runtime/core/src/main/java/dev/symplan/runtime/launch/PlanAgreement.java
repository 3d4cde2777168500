package dev.symplan.runtime.launch;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.hash.Hashing;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Agreement;
import dev.symplan.codegen.Agreement.Term;
import dev.symplan.codegen.Executable;
import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.RunException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;

/**
 * Compares what the processes of a run made of the plan, before one touches another's memory: by a
 * digest of all terms, and only where these differ by the terms themselves.
 */
public final class PlanAgreement {

  /** Of terms that are sent; a difference after these is reported without its location. */
  private static final int MAX_BYTES = 8 << 20;

  private PlanAgreement() {}

  /**
   * Compares an executable with those of the other ranks.
   *
   * @throws RunException when the ranks of this one do not fit each other, another process has
   *     another one, or ranks that reach each other's memory are on different hosts: the message
   *     names the first difference
   */
  public static void check(Executable executable, World world) {
    check(executable, world, world::hosts, false);
  }

  /**
   * The same where memory reaches further than a host, and NCCL carries windows between hosts.
   *
   * @param domains by rank, a name for all whose memory can be reached; asked on all ranks at once
   */
  public static void check(
      Executable executable, World world, Supplier<ImmutableList<Host>> domains) {
    check(executable, world, domains, true);
  }

  private static void check(
      Executable executable, World world, Supplier<ImmutableList<Host>> domains, boolean windows) {
    int ranks = executable.ranks().size();
    if (ranks != world.size()) {
      throw new RunException(
          "the plan is for %s, but %s started %s"
              .formatted(
                  Units.count(ranks, "rank"),
                  world.environment().launcher().text(),
                  Units.count(world.size(), "process")));
    }
    var terms = Agreement.of(executable);
    check(terms);
    var hasher = Hashing.sha256().newHasher();
    terms.forEach(own -> hasher.putBytes(toBytes(own, Integer.MAX_VALUE)));
    var digest = hasher.hash().asBytes();
    var digests = world.gather("the plan's digest", digest);
    if (digests.stream().allMatch(other -> Arrays.equals(other, digest))) {
      HostAgreement.check(executable, domains.get(), windows);
      return;
    }
    var all =
        world.gather("the plan's terms", toBytes(terms.get(world.rank()), MAX_BYTES)).stream()
            .map(PlanAgreement::ofBytes)
            .toList();
    throw new RunException(
        Agreement.firstDifference(all)
            .orElse("the processes have different plans, although their own parts agree"));
  }

  /** {@return the other ranks whose memory a rank reaches, and who reach its own} */
  public static ImmutableSortedSet<Integer> peers(Executable executable, int rank) {
    return HostAgreement.peers(executable, rank);
  }

  /**
   * Compares the ranks of an executable with each other.
   *
   * @throws RunException when they do not fit each other; the message names the first difference
   */
  public static void check(Executable executable) {
    check(Agreement.of(executable));
  }

  private static void check(ImmutableList<ImmutableList<Term>> terms) {
    Agreement.firstDifference(terms)
        .ifPresent(
            difference -> {
              throw new RunException(difference);
            });
  }

  private static byte[] toBytes(List<Term> terms, int most) {
    var bytes = new ByteArrayOutputStream();
    try (var out = new DataOutputStream(bytes)) {
      for (var term : terms) {
        if (out.size() > most) {
          break;
        }
        text(out, term.text());
        out.writeInt(term.members().length());
        for (int member : term.members().asList()) {
          out.writeInt(member);
        }
        numbers(out, term.sent());
        numbers(out, term.received());
        text(out, term.location());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  private static void text(DataOutputStream out, String text) throws IOException {
    var bytes = text.getBytes(StandardCharsets.UTF_8);
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  private static void numbers(DataOutputStream out, ImmutableLongArray numbers) throws IOException {
    out.writeInt(numbers.length());
    for (long number : numbers.asList()) {
      out.writeLong(number);
    }
  }

  private static ImmutableList<Term> ofBytes(byte[] bytes) {
    var terms = new ArrayList<Term>();
    try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      while (in.available() > 0) {
        var text = text(in);
        var members = ImmutableIntArray.builder();
        for (int left = count(in, Integer.BYTES); left > 0; left--) {
          members.add(in.readInt());
        }
        terms.add(new Term(text, members.build(), numbers(in), numbers(in), text(in)));
      }
    } catch (IOException e) {
      throw new RunException("a rank's terms of the plan cannot be read: " + e.getMessage(), e);
    }
    return ImmutableList.copyOf(terms);
  }

  private static int count(DataInputStream in, int size) throws IOException {
    int count = in.readInt();
    if (count < 0 || (long) count * size > in.available()) {
      throw new IOException("a count of " + count);
    }
    return count;
  }

  private static String text(DataInputStream in) throws IOException {
    return new String(in.readNBytes(count(in, 1)), StandardCharsets.UTF_8);
  }

  private static ImmutableLongArray numbers(DataInputStream in) throws IOException {
    var numbers = ImmutableLongArray.builder();
    for (int left = count(in, Long.BYTES); left > 0; left--) {
      numbers.add(in.readLong());
    }
    return numbers.build();
  }
}
