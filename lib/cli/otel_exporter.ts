/** Checks the address that Deno's OpenTelemetry exporter sends to. */
import { isWithin } from "../access/networks.ts";
import { type Config, ConfigError } from "../config.ts";
import { bareHostname } from "../host_address.ts";
import { allowedAddresses, BlockedAddress, metadataGuard } from "../upstreams/address_guard.ts";

/**
 * Checks the exporter's address once, at the start, because the exporter has no address guard of its own.
 * @throws {ConfigError} if the address is not allowed
 */
export async function checkExporter(privateNetworks: Config["private_networks"]): Promise<void> {
  const address = URL.parse(Deno.env.get("OTEL_EXPORTER_OTLP_ENDPOINT") ?? "");
  if (address === null || (Deno.env.get("OTEL_DENO") ?? "") === "") return;
  try {
    await allowedAddresses(bareHostname(address.hostname), {
      guard(hostname, at) {
        if (!isWithin(at, privateNetworks ?? [])) metadataGuard(hostname, at);
      },
    });
  } catch (error) {
    // Other errors are ignored: the collector may start later.
    if (error instanceof BlockedAddress) throw new ConfigError([`OTEL_EXPORTER_OTLP_ENDPOINT: ${error.message}`]);
  }
}
