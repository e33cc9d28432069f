/** Resolves the protocols and the vendor that `translate` was asked for. */
import type { Protocol } from "../protocols/canonical/types.ts";
import { CLIENT_CODECS } from "../protocols/client_codecs.ts";
import type { Codec } from "../protocols/codec.ts";
import { QUIRKS } from "../protocols/quirks/mod.ts";
import { isVendorName, protocolsOf, type Vendor, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";

const TARGETS: Readonly<Record<Protocol, VendorName>> = {
  chat: "openai-compatible",
  responses: "openai",
  messages: "anthropic",
  gemini: "gemini",
};

/** A protocol of clients, and one of a vendor. */
export interface TranslationTarget {
  codec: Codec;
  protocol: Protocol;
  vendorName: VendorName;
  vendor: Vendor;
  quirk: typeof QUIRKS[VendorName];
}

/** Looks the names up. Returns the problem, in one line, if a name is unknown or the names do not fit each other. */
export function translationTarget(
  { from, to, vendor }: { from: string; to: string; vendor: string | undefined },
): TranslationTarget | string {
  if (!Object.hasOwn(CLIENT_CODECS, from)) {
    return `Unknown protocol "${from}"; known: ${Object.keys(CLIENT_CODECS).join(", ")}`;
  }
  if (!Object.hasOwn(TARGETS, to)) return `Unknown protocol "${to}"; known: ${Object.keys(TARGETS).join(", ")}`;
  const protocol = to as Protocol;
  const name = vendor ?? TARGETS[protocol];
  if (!isVendorName(name)) return `Unknown vendor "${name}"; known: ${Object.keys(VENDORS).join(", ")}`;
  const known: Vendor = vendorOf(name);
  const supported = protocolsOf(known);
  if (!supported.includes(protocol)) {
    return `Vendor "${name}" does not support protocol "${to}"; it supports: ${supported.join(", ")}`;
  }
  return { codec: CLIENT_CODECS[from as Protocol], protocol, vendorName: name, vendor: known, quirk: QUIRKS[name] };
}
