/** What the steps between a client's prompt and an upstream's dialect share. */
import type { Machine, Prompt, Protocol, ReplyEvent } from "../canonical/types.ts";
import type { UpstreamProtocol, WriteTarget } from "../upstream_codec.ts";

/** Where a prompt goes, and in which protocol it will be written. */
export interface AdaptTarget extends WriteTarget {
  protocol: UpstreamProtocol;
}

/** A prompt fitted to its target, and the way back. */
export interface AdaptedPrompt {
  prompt: Prompt;
  /**
   * A fresh machine for one answer to the prompt. It undoes the renaming and wrapping, enforces the stop sequences that
   * the upstream was not given, and sets the finish reason right. After its finish or error it gives nothing more: the
   * answer is then over, whatever the upstream still says, and its feed can be cancelled.
   */
  restore: () => Machine<ReplyEvent, ReplyEvent>;
  /** Most tokens of the answer, where the upstream takes no limit as low: its answer has to be cut. */
  limit?: number;
}

/** What each protocol calls the things that are dropped or refused here. */
export const PARAMETER_NAMES: Readonly<
  Record<Protocol, Record<"messages" | "stop" | "reasoning" | "effort" | "signed" | "unsigned", string>>
> = {
  chat: {
    messages: "messages",
    stop: "stop",
    reasoning: "reasoning",
    effort: "reasoning_effort",
    signed: "reasoning_details",
    unsigned: "reasoning_content",
  },
  responses: {
    messages: "input",
    stop: "stop",
    reasoning: "reasoning",
    effort: "reasoning.effort",
    signed: "input.reasoning",
    unsigned: "input.reasoning",
  },
  messages: {
    messages: "messages",
    stop: "stop_sequences",
    reasoning: "thinking",
    effort: "output_config.effort",
    signed: "messages.thinking",
    unsigned: "messages.thinking",
  },
};
