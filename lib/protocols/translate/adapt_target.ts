/** Types that the steps of `adaptPrompt()` share. */
import type { Machine, Prompt, Protocol, ReplyEvent } from "../canonical/types.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** The target of a prompt and its protocol. */
export interface AdaptTarget extends WriteTarget {
  protocol: Protocol;
}

/** An adapted prompt, and the way back. */
export interface AdaptedPrompt {
  prompt: Prompt;
  /**
   * Returns a machine for one answer. It restores tool names and custom calls, enforces the stop sequences that the
   * upstream was not given, and normalizes the finish reason. After its finish or error the answer is over, whatever
   * the upstream still sends, and its feed can be cancelled.
   */
  restore: () => Machine<ReplyEvent, ReplyEvent>;
  /** Most tokens of the answer, if the upstream's minimum is higher: the gateway cuts the answer. */
  limit?: number;
}
