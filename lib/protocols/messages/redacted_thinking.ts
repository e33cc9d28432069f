/** Reasoning that the vendor encrypted as a whole has a block type of its own in this protocol. */
import { readSignature } from "../canonical/signature.ts";
import type { ContentBlockOf, Signature, UnknownMembers } from "../canonical/types.ts";

const TYPE = "redacted_thinking";

/** The issuer whose values the protocol carries bare. */
const NATIVE = "anthropic";

/**
 * Id of a signature that is such data. Clients of the other protocols keep no block types, but they keep the signature
 * with its id: by it the data finds its way back into a block of its own type.
 */
const SIGNATURE_ID = "redacted";

/** Reads the data of a `redacted_thinking` block: hidden reasoning whose `rest` names the type. */
export function readRedacted(data: string): ContentBlockOf<"reasoning"> {
  const signature = readSignature(data, NATIVE);
  return {
    type: "reasoning",
    text: "",
    hidden: true,
    // In an envelope there may be another vendor's signature, which has an id of its own.
    signature: signature.issuer === NATIVE ? { ...signature, id: SIGNATURE_ID } : signature,
    unknownMembers: redactedMembers(),
  };
}

/** The signature of an upstream's `redacted_thinking` block. */
export function redactedSignature(issuer: string, data: string): Signature {
  return { issuer, value: data, id: SIGNATURE_ID };
}

/** True for a signature that is the data of a `redacted_thinking` block. */
export function isRedactedSignature({ id }: Signature): boolean {
  return id === SIGNATURE_ID;
}

/** What marks reasoning as `redacted_thinking`. */
export function redactedMembers(): UnknownMembers {
  return { from: "messages", members: { type: TYPE } };
}

/**
 * True for reasoning that goes out as `redacted_thinking`: it came as such, or in another protocol, which keeps no more of
 * it than the vendor's own signature with its id.
 */
export function isRedacted(
  { unknownMembers }: { unknownMembers?: UnknownMembers },
  signature: Signature | undefined,
): boolean {
  if (unknownMembers?.from === "messages" && unknownMembers.members.type === TYPE) return true;
  return signature?.issuer === NATIVE && isRedactedSignature(signature);
}
