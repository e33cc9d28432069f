/** Reasoning that the vendor encrypted as a whole has a block type of its own in this protocol. */
import { readSignature } from "../../canonical/signature.ts";
import type { BlockOf, Rest } from "../../canonical/types.ts";

const TYPE = "redacted_thinking";

/** Reads the data of a `redacted_thinking` block: hidden reasoning whose `rest` names the type. */
export function readRedacted(data: string): BlockOf<"reasoning"> {
  return {
    type: "reasoning",
    text: "",
    hidden: true,
    signature: readSignature(data, "anthropic"),
    rest: { from: "messages", members: { type: TYPE } },
  };
}

/** True for reasoning that came as, and goes out as, `redacted_thinking`. */
export function isRedacted({ rest }: { rest?: Rest }): boolean {
  return rest?.from === "messages" && rest.members.type === TYPE;
}
