/**
 * The smallest possible gateway on Deno: `Deno.serve` and `fetch`, with bodies passed through. Arguments: port,
 * upstream.
 */
const [port = "0", upstream = ""] = Deno.args;

Deno.serve({ hostname: "127.0.0.1", port: Number(port), onListen: () => {} }, async (request) => {
  const { pathname } = new URL(request.url);
  const response = await fetch(upstream + pathname, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: request.headers.get("authorization") ?? "" },
    body: request.body,
  });
  return new Response(response.body, {
    status: response.status,
    headers: { "content-type": response.headers.get("content-type") ?? "" },
  });
});
