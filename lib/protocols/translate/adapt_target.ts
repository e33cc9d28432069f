/** Types that the steps of `adaptPrompt()` share. */
import type { Machine, Prompt, Protocol, ReplyEvent } from "../canonical/types.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** The target of a prompt and its protocol. */
export interface AdaptTarget extends WriteTarget {
  protocol: Protocol;
}

/** An adapted prompt, with what restores its answer. */
export interface AdaptedPrompt {
  prompt: Prompt;
  /**
   * Returns a machine for one answer. It restores tool names and custom calls, enforces the stop sequences that the
   * upstream did not get, and normalizes the finish reason. After it emits a finish or an error, the answer is over:
   * the machine ignores further events, and the upstream's answer can be cancelled.
   */
  restore: () => Machine<ReplyEvent, ReplyEvent>;
  /** The client's token limit, if it is below the upstream's minimum: the gateway cuts the answer there. */
  limit?: number;
}
