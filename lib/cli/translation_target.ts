/** Resolves the protocols and the vendor that the flags of `translate` name. */
import type { Protocol } from "../protocols/canonical/types.ts";
import { CLIENT_CODECS } from "../protocols/client_codecs.ts";
import type { Codec } from "../protocols/codec.ts";
import { QUIRKS } from "../protocols/quirks/mod.ts";
import { isVendorName, protocolsOf, type Vendor, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { UsageError } from "./arguments.ts";

const DEFAULT_VENDORS: Readonly<Record<Protocol, VendorName>> = {
  chat: "openai-compatible",
  responses: "openai",
  messages: "anthropic",
  gemini: "gemini",
};

/** The protocol of a client, and the vendor and protocol that its requests are translated to. */
export interface TranslationTarget {
  /** Codec of the client's protocol. */
  codec: Codec;
  protocol: Protocol;
  vendorName: VendorName;
  vendor: Vendor;
  quirk: typeof QUIRKS[VendorName];
}

/** Looks up the names. @throws {UsageError} if a name is unknown or the vendor lacks the protocol */
export function translationTarget(
  { from, to, vendor }: { from: string; to: string; vendor: string | undefined },
): TranslationTarget {
  if (!Object.hasOwn(CLIENT_CODECS, from)) {
    throw new UsageError(`Unknown protocol "${from}" of --from; known: ${Object.keys(CLIENT_CODECS).join(", ")}`);
  }
  if (!Object.hasOwn(DEFAULT_VENDORS, to)) {
    throw new UsageError(`Unknown protocol "${to}" of --to; known: ${Object.keys(DEFAULT_VENDORS).join(", ")}`);
  }
  const protocol = to as Protocol;
  const name = vendor ?? DEFAULT_VENDORS[protocol];
  if (!isVendorName(name)) {
    throw new UsageError(`Unknown vendor "${name}"; known: ${Object.keys(VENDORS).join(", ")}`);
  }
  const known: Vendor = vendorOf(name);
  const supported = protocolsOf(known);
  if (!supported.includes(protocol)) {
    throw new UsageError(`Vendor "${name}" does not support protocol "${to}"; it supports: ${supported.join(", ")}`);
  }
  return { codec: CLIENT_CODECS[from as Protocol], protocol, vendorName: name, vendor: known, quirk: QUIRKS[name] };
}
