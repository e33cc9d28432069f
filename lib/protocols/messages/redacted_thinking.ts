/** Encrypted reasoning, which has a block type of its own in this protocol. */
import { readSignature } from "../canonical/signature.ts";
import type { ContentBlockOf, Signature, UnknownMembers } from "../canonical/types.ts";

const TYPE = "redacted_thinking";

/** The issuer of values without an envelope. */
const NATIVE = "anthropic";

/**
 * Signature id of such data. Clients of other protocols keep no block types, but they keep the signature with its id,
 * which identifies the data when it comes back.
 */
const SIGNATURE_ID = "redacted";

/** Reads a `redacted_thinking` block as hidden reasoning whose unknown members have the type. */
export function readRedacted(data: string): ContentBlockOf<"reasoning"> {
  const signature = readSignature(data, NATIVE);
  return {
    type: "reasoning",
    text: "",
    hidden: true,
    // An envelope may have another vendor's signature with an id of its own.
    signature: signature.issuer === NATIVE ? { ...signature, id: SIGNATURE_ID } : signature,
    unknownMembers: redactedMembers(),
  };
}

/** Returns the signature of an upstream's `redacted_thinking` block. */
export function redactedSignature(issuer: string, data: string): Signature {
  return { issuer, value: data, id: SIGNATURE_ID };
}

/** True for the data of a `redacted_thinking` block. */
export function isRedactedSignature({ id }: Signature): boolean {
  return id === SIGNATURE_ID;
}

/** Returns the unknown members that mark reasoning as `redacted_thinking`. */
export function redactedMembers(): UnknownMembers {
  return { from: "messages", members: { type: TYPE } };
}

/**
 * True for reasoning that is written as `redacted_thinking`: it came as such, or from another protocol, which keeps
 * only Anthropic's signature with its id.
 */
export function isRedacted(
  { unknownMembers }: { unknownMembers?: UnknownMembers },
  signature: Signature | undefined,
): boolean {
  if (unknownMembers?.from === "messages" && unknownMembers.members.type === TYPE) return true;
  return signature?.issuer === NATIVE && isRedactedSignature(signature);
}
