/** Reasoning that the vendor encrypted as a whole has a block type of its own in this protocol. */
import { readSignature } from "../../canonical/signature.ts";
import type { BlockOf, Rest, Signature } from "../../canonical/types.ts";

const TYPE = "redacted_thinking";

/** Reads the data of a `redacted_thinking` block: hidden reasoning whose `rest` names the type. */
export function readRedacted(data: string): BlockOf<"reasoning"> {
  return {
    type: "reasoning",
    text: "",
    hidden: true,
    signature: readSignature(data, "anthropic"),
    rest: redactedRest(),
  };
}

/**
 * Id of a signature that is such data. Clients of the other protocols keep no block types, but they keep the signature
 * with its id: by it the data finds its way back into a block of its own type.
 */
const SIGNATURE_ID = "redacted";

/** The signature of an upstream's `redacted_thinking` block. */
export function redactedSignature(issuer: string, data: string): Signature {
  return { issuer, value: data, id: SIGNATURE_ID };
}

/** True for a signature that is the data of a `redacted_thinking` block. */
export function isRedactedSignature({ id }: Signature): boolean {
  return id === SIGNATURE_ID;
}

/** What marks reasoning as `redacted_thinking`. */
export function redactedRest(): Rest {
  return { from: "messages", members: { type: TYPE } };
}

/** True for reasoning that came as, and goes out as, `redacted_thinking`. */
export function isRedacted({ rest }: { rest?: Rest }): boolean {
  return rest?.from === "messages" && rest.members.type === TYPE;
}
