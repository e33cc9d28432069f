/** Types that the steps of `adaptPrompt()` share. */
import type { Machine, Prompt, Protocol, ReplyEvent } from "../canonical/types.ts";
import type { UpstreamProtocol, WriteTarget } from "../upstream_codec.ts";

/** The target of a prompt and its protocol. */
export interface AdaptTarget extends WriteTarget {
  protocol: UpstreamProtocol;
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

/** Parameter names of each protocol, for dropped and refused parameters. */
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
