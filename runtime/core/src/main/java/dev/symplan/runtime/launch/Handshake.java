package dev.symplan.runtime.launch;

import com.google.common.hash.HashCode;
import com.google.common.hash.Hashing;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Arrays;

/**
 * The first messages of both sides, by which they recognize each other: a process greets the store
 * and gets a challenge, proves that it knows the secret, and is told whether it is welcome, with a
 * proof that the store knows it, too. The secret itself is never sent.
 *
 * @param version of the protocol
 * @param job a digest of what makes the run this one
 * @param host the name of the process's host, for people
 * @param nonce random bytes, so that no two greetings are the same
 */
record Handshake(int version, HashCode job, int rank, int size, String host, HashCode nonce) {
  static final int VERSION = 2;

  private static final byte[] MAGIC = "SYMPLAN\n".getBytes(StandardCharsets.US_ASCII);
  private static final int DIGEST = 32;
  private static final int MAX_TEXT = 1 << 10;
  private static final int MAX_HOST = 255;

  /** An answer of the store; ordinals are part of the protocol. */
  enum Answer {
    WELCOME,
    /** Another try may do: what is in the way may be the end of an earlier session. */
    LATER,
    NEVER,
    /** The process has to prove that it knows the secret. */
    CHALLENGE
  }

  static Handshake of(LaunchEnvironment environment, String host) {
    var digest =
        Hashing.sha256()
            .newHasher()
            .putUnencodedChars(environment.job())
            .putChar('\0')
            .putInt(environment.size())
            .hash();
    var name = host.length() > MAX_HOST ? host.substring(0, MAX_HOST) : host;
    return new Handshake(VERSION, digest, environment.rank(), environment.size(), name, newNonce());
  }

  /** {@return random bytes that have not been used} */
  static HashCode newNonce() {
    var bytes = new byte[DIGEST];
    new SecureRandom().nextBytes(bytes);
    return HashCode.fromBytes(bytes);
  }

  void write(DataOutputStream out) throws IOException {
    out.write(MAGIC);
    out.writeInt(version);
    out.write(job.asBytes());
    out.writeInt(rank);
    out.writeInt(size);
    out.write(nonce.asBytes());
    out.writeUTF(host);
    out.flush();
  }

  /**
   * {@return the version of what follows}
   *
   * @throws IOException when it is something else than a greeting
   */
  static int readVersion(DataInputStream in) throws IOException {
    magic(in);
    return in.readInt();
  }

  /**
   * {@return the rest of a greeting of {@link #VERSION}}
   *
   * @throws IOException when it is something else
   */
  static Handshake read(DataInputStream in) throws IOException {
    var job = readCode(in);
    int rank = in.readInt();
    int size = in.readInt();
    var nonce = readCode(in);
    var host = in.readUTF();
    if (host.length() > MAX_HOST) {
      throw new IOException("the name of a host with %s characters".formatted(host.length()));
    }
    return new Handshake(VERSION, job, rank, size, host, nonce);
  }

  /** {@return a proof, a challenge or another digest} */
  static HashCode readCode(DataInputStream in) throws IOException {
    var bytes = new byte[DIGEST];
    in.readFully(bytes);
    return HashCode.fromBytes(bytes);
  }

  private static void magic(DataInputStream in) throws IOException {
    var magic = new byte[MAGIC.length];
    in.readFully(magic);
    if (!Arrays.equals(magic, MAGIC)) {
      throw new IOException("the program that listens there is not Symplan");
    }
  }

  /**
   * An answer of the store.
   *
   * @param reason for people, where a process is not welcome
   * @param code the challenge, or the store's proof where a process is welcome; else nothing
   */
  record Reply(Answer answer, String reason, HashCode code) {
    private static final HashCode NOTHING = HashCode.fromBytes(new byte[DIGEST]);

    static Reply refusal(Answer answer, String reason) {
      return new Reply(answer, reason, NOTHING);
    }

    static Reply challenge(HashCode nonce) {
      return new Reply(Answer.CHALLENGE, "", nonce);
    }

    void write(DataOutputStream out) throws IOException {
      out.write(MAGIC);
      out.writeByte(answer.ordinal());
      out.writeUTF(reason);
      out.write(code.asBytes());
      out.flush();
    }

    static Reply read(DataInputStream in) throws IOException {
      magic(in);
      int answer = in.readUnsignedByte();
      if (answer >= Answer.values().length) {
        throw new IOException("an answer " + answer);
      }
      var reason = in.readUTF();
      return new Reply(
          Answer.values()[answer],
          reason.substring(0, Math.min(MAX_TEXT, reason.length())),
          readCode(in));
    }
  }

  /**
   * The proofs and keys that a secret, a greeting and a challenge give.
   *
   * @param ofProcess the process's proof that it knows the secret
   * @param ofStore the store's
   * @param fromProcess the key of the seals of the process's frames
   * @param fromStore the same of the store's
   */
  record Proofs(HashCode ofProcess, HashCode ofStore, HashCode fromProcess, HashCode fromStore) {
    static Proofs of(Secret secret, Handshake greeting, HashCode challenge) {
      var said = new ByteArrayOutputStream();
      try (var out = new DataOutputStream(said)) {
        greeting.write(out);
        out.write(challenge.asBytes());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return new Proofs(
          code(secret, "proof of a process", said),
          code(secret, "proof of the store", said),
          code(secret, "frames of a process", said),
          code(secret, "frames of the store", said));
    }

    private static HashCode code(Secret secret, String use, ByteArrayOutputStream said) {
      var bytes = new ByteArrayOutputStream();
      bytes.writeBytes((use + '\0').getBytes(StandardCharsets.US_ASCII));
      bytes.writeBytes(said.toByteArray());
      return secret.hmac(bytes.toByteArray());
    }
  }
}
