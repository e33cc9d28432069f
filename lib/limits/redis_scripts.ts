/**
 * The Lua scripts that count limits in Redis. Redis runs each script atomically and by its own clock. The windows are
 * those of `sliding_window.ts`.
 *
 * A script gets one key: the prefix of all keys that it uses. The prefix contains a hash tag, so that a cluster keeps
 * all these keys in one slot: a script reads and changes several limits at once. The keys after the prefix:
 *
 * - `r:NAME`, `t:NAME`: requests and tokens of an owner. A hash of amounts by bucket; a bucket is named by its end,
 *   counted in buckets since 1970. Further fields are the sum `s`, and the first and last bucket, `f` and `l`. A script
 *   reads the whole hash only to remove expired buckets, and to compute a wait.
 * - `c:NAME`: concurrency of an owner. A sorted set of leases, named `NODE/ID`, by their ends.
 * - `nodes`: a sorted set of the nodes by the ends of their sessions. Any node that finds an ended session frees its
 *   slots, a batch at a time.
 * - `held:NODE`: a hash of the running requests of a node, by their ids. A value is a line with the facts for the
 *   ledger, followed by the limits. The script that deletes a field, or the limits in it, also releases what they
 *   reserved. A value without limits belongs to a request that has ended, but whose ledger entry is not durable yet.
 * - `lost`: a hash of the requests that ran when their node's session ended, until a node has entered them into the
 *   ledger.
 * - `reach`: a sorted set of the nodes that can reach their shared store, by the time of its last answer.
 *
 * All keys expire by themselves. Limits are passed as lines `UR LIMIT COST NAME`: `U` is the letter of the unit, `R` is
 * 1 if the limit is report-only, else 0.
 */
import { BUCKET_MS, WINDOW_MS } from "./sliding_window.ts";
import { LATE_MS } from "./memory_limiter.ts";

/** Prefix of all keys. */
export const PREFIX = "sluice:{limits}:";

/** Letters of the units in arguments and keys. */
export const UNIT_LETTERS = { requests: "r", tokens: "t", concurrency: "c" } as const;

/** Requests of an ended session that one script frees: a few hundred microseconds of work. */
const FREED_PER_CALL = 200;

/** Time after the last heartbeat until the keys of nodes expire, in milliseconds. */
const NODE_KEYS_EXPIRY_MS = 86_400_000;

/** Longest lease of a session, in milliseconds, even if the server's clock is set back. */
const MAX_LEASE_MS = 3_600_000;

/** Time by which a key outlives its last amount or lease, in milliseconds. */
const KEY_MARGIN_MS = 1_000;

/** Functions that all scripts begin with. */
const COMMON = `
local prefix = KEYS[1]
local nodes, lost = prefix .. 'nodes', prefix .. 'lost'

-- The time in whole milliseconds. Only tests pass a time of their own.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
-- The last bucket that has ended, and the bucket at whose end amounts that are reserved now stop counting.
local edge = math.floor(now / ${BUCKET_MS})
local latest = edge + 1 + ${WINDOW_MS / BUCKET_MS}
-- Later buckets were written before the clock was set back by more than a window. After a smaller change, amounts just
-- count a little longer.
local too_late = latest + ${WINDOW_MS / BUCKET_MS}

local function parse(text)
  local limits = {}
  for unit, report, most, cost, name in string.gmatch(text, '(%a)(%d) (%d+) (%d+) ([^\\n]+)') do
    limits[#limits + 1] = {
      key = prefix .. unit .. ':' .. name, unit = unit, refuses = report == '0',
      most = tonumber(most), cost = tonumber(cost),
    }
  end
  return limits
end

-- Returns the amounts of a window by bucket.
local function buckets(key)
  local flat, found = redis.call('HGETALL', key), {}
  for at = 1, #flat, 2 do
    local bucket = tonumber(flat[at])
    if bucket then found[bucket] = tonumber(flat[at + 1]) end
  end
  return found
end

-- Deletes buckets that have ended, and moves amounts from buckets that end too late into the latest valid one.
local function tidy(limit)
  local gone, late = {}, 0
  limit.sum, limit.first, limit.last = 0, nil, nil
  for bucket, amount in pairs(buckets(limit.key)) do
    if bucket > edge and bucket <= too_late then
      limit.sum = limit.sum + amount
      limit.first = math.min(bucket, limit.first or bucket)
      limit.last = math.max(bucket, limit.last or bucket)
    else
      gone[#gone + 1] = bucket
      if bucket > too_late then late = late + amount end
    end
  end
  if late > 0 then
    redis.call('HINCRBY', limit.key, latest, late)
    limit.sum, limit.first, limit.last = limit.sum + late, math.min(limit.first or latest, latest), math.max(limit.last or latest, latest)
  end
  if limit.sum == 0 then return redis.call('DEL', limit.key) end
  for _, bucket in ipairs(gone) do redis.call('HDEL', limit.key, bucket) end
  redis.call('HSET', limit.key, 's', limit.sum, 'f', limit.first, 'l', limit.last)
end

-- Reads the sum of a limit, with its first and last bucket or the end of its last lease.
local function read(limit)
  if limit.unit == 'c' then
    redis.call('ZREMRANGEBYSCORE', limit.key, '-inf', now)
    limit.sum = redis.call('ZCARD', limit.key)
    limit.last = limit.sum > 0 and tonumber(redis.call('ZRANGE', limit.key, -1, -1, 'WITHSCORES')[2]) or nil
    return
  end
  local found = redis.call('HMGET', limit.key, 's', 'f', 'l')
  limit.sum, limit.first, limit.last = tonumber(found[1] or 0), tonumber(found[2] or nil), tonumber(found[3] or nil)
  if limit.first and (limit.first <= edge or limit.last > too_late) then tidy(limit) end
end

-- Returns the milliseconds until there is room; -1 if there never will be.
local function wait(limit)
  local excess = limit.sum + limit.cost - limit.most
  if excess <= 0 then return 0 end
  if limit.cost > limit.most then return -1 end
  if limit.unit == 'c' then
    return redis.call('ZRANGE', limit.key, excess - 1, excess - 1, 'WITHSCORES')[2] - now
  end
  local found = buckets(limit.key)
  for bucket = limit.first, limit.last do
    excess = excess - (found[bucket] or 0)
    if excess <= 0 then return bucket * ${BUCKET_MS} - now end
  end
  return -1
end

local function add(limit, bucket, amount)
  if amount == 0 or bucket <= edge then return end
  redis.call('HINCRBY', limit.key, bucket, amount)
  local is_last = bucket > (limit.last or 0)
  limit.sum = limit.sum + amount
  limit.first, limit.last = math.min(bucket, limit.first or bucket), math.max(bucket, limit.last or bucket)
  redis.call('HSET', limit.key, 's', limit.sum, 'f', limit.first, 'l', limit.last)
  if is_last then redis.call('PEXPIRE', limit.key, bucket * ${BUCKET_MS} - now + ${KEY_MARGIN_MS}) end
end

-- Removes an amount from a bucket, if it still counts.
local function remove(limit, bucket, amount)
  if amount == 0 or bucket <= edge then return end
  local there = tonumber(redis.call('HGET', limit.key, bucket) or 0)
  local given = math.min(there, amount)
  if given == 0 then return end
  redis.call('HINCRBY', limit.key, bucket, -given)
  limit.sum = limit.sum - given
  redis.call('HSET', limit.key, 's', limit.sum)
  if given < there then return end
  redis.call('HDEL', limit.key, bucket)
  if bucket == limit.first or bucket == limit.last then tidy(limit) end
end

-- Calls a function with the name of each lease. A request has a lease for each slot that it costs: almost always one.
local function leases(limit, node, id, act)
  for slot = 1, limit.cost do act(node .. '/' .. id .. (slot > 1 and '#' .. slot or '')) end
end

local function occupy(limit, node, id, lease_end)
  if lease_end <= now or limit.cost == 0 then return end
  leases(limit, node, id, function(lease) redis.call('ZADD', limit.key, lease_end, lease) end)
  limit.sum = limit.sum + limit.cost
  if lease_end <= (limit.last or 0) then return end
  limit.last = lease_end
  redis.call('PEXPIRE', limit.key, lease_end - now + ${KEY_MARGIN_MS})
end

local function vacate(limit, node, id)
  leases(limit, node, id, function(lease) redis.call('ZREM', limit.key, lease) end)
end

local function hold(node, id, facts, text)
  local held = prefix .. 'held:' .. node
  redis.call('HSET', held, id, facts .. '\\n' .. text)
  if redis.call('HLEN', held) == 1 then redis.call('PEXPIRE', held, ${NODE_KEYS_EXPIRY_MS}) end
end

-- Returns whether the request was held with its limits: only then may the caller release what they reserved. The facts
-- for the ledger can be kept.
local function release(node, id, keeps_facts)
  local held = prefix .. 'held:' .. node
  local value = redis.call('HGET', held, id)
  if not value then return false end
  local line = string.find(value, '\\n', 1, true)
  if not keeps_facts or string.sub(value, 1, 1) ~= '{' then redis.call('HDEL', held, id)
  else redis.call('HSET', held, id, string.sub(value, 1, line)) end
  return line < #value
end

-- Frees the slots of a request. If its node has crashed, its facts are kept for the ledger.
local function free(node, id, value, is_lost)
  local line = string.find(value, '\\n', 1, true)
  local facts, text = string.sub(value, 1, line - 1), string.sub(value, line + 1)
  for _, limit in ipairs(parse(text)) do
    if limit.unit == 'c' then vacate(limit, node, id) end
  end
  release(node, id)
  if is_lost and string.sub(facts, 1, 1) == '{' then
    redis.call('HSET', lost, id, facts)
    redis.call('PEXPIRE', lost, ${NODE_KEYS_EXPIRY_MS})
  end
end

local function alive(node)
  local lives = redis.call('ZSCORE', nodes, node)
  return lives and tonumber(lives) > now
end

-- Frees some requests of a node. Returns 1 if there are more.
local function free_some(node, is_lost)
  local held = prefix .. 'held:' .. node
  local flat = redis.call('HRANDFIELD', held, ${FREED_PER_CALL}, 'WITHVALUES')
  for at = 1, #flat, 2 do free(node, flat[at], flat[at + 1], is_lost) end
  if redis.call('EXISTS', held) == 1 then return 1 end
  redis.call('ZREM', nodes, node)
  return 0
end

-- Frees some requests of a node whose session has ended, if there is one. Returns 1 if it has more.
local function free_dead()
  local dead = redis.call('ZRANGEBYSCORE', nodes, '-inf', now, 'LIMIT', 0, 1)[1]
  return dead and free_some(dead, true) or 0
end

local function statuses(limits, answer)
  for _, limit in ipairs(limits) do
    answer[#answer + 1] = limit.sum
    if not limit.last or limit.sum == 0 then answer[#answer + 1] = 0
    elseif limit.unit == 'c' then answer[#answer + 1] = limit.last - now
    else answer[#answer + 1] = limit.last * ${BUCKET_MS} - now end
  end
  return answer
end
`;

/**
 * Reserves all limits of a request, or none if one of them refuses.
 *
 * Arguments after the clock: node, id, duration, facts for the ledger, limits. Returns whether it was admitted, the
 * time, a wait for each limit, and the statuses; only -1 if the session has ended.
 */
const TAKE = `
local node, id, text = ARGV[2], ARGV[3], ARGV[6]
if not alive(node) then return {-1} end
free_dead()
local limits, waits, admitted = parse(text), {}, 1
for at, limit in ipairs(limits) do
  read(limit)
  waits[at] = wait(limit)
  if waits[at] ~= 0 and limit.refuses then admitted = 0 end
end
if admitted == 1 then
  local lease_end = math.ceil((now + tonumber(ARGV[4])) / ${BUCKET_MS}) * ${BUCKET_MS}
  for _, limit in ipairs(limits) do
    if limit.unit == 'c' then occupy(limit, node, id, lease_end) else add(limit, latest, limit.cost) end
  end
  hold(node, id, ARGV[5], text)
end
local answer = {admitted, now}
for at = 1, #limits do answer[at + 2] = waits[at] end
return statuses(limits, answer)
`;

/**
 * Ends a request.
 *
 * Arguments after the clock: node; id; limits; the bucket in which they were counted; the end of the lease; the used
 * tokens (`-` if unknown, empty if the request is undone); and 1 if the facts for the ledger are kept. Returns 1 and
 * the statuses; only 0 if the call is too late, or only -1 if the session has ended.
 */
const END = `
local node, id, bucket, used = ARGV[2], ARGV[3], tonumber(ARGV[5]), ARGV[7]
local held = release(node, id, ARGV[8] == '1')
if tonumber(ARGV[6]) + ${LATE_MS} <= now then return {0} end
if not held and not alive(node) then return {-1} end
local limits = parse(ARGV[4])
for _, limit in ipairs(limits) do
  if held and limit.unit == 'c' then vacate(limit, node, id) end
  read(limit)
  if held and limit.unit ~= 'c' then
    local tokens = limit.unit == 't' and tonumber(used)
    if used == '' then remove(limit, bucket, limit.cost)
    elseif tokens and tokens < limit.cost then remove(limit, bucket, limit.cost - tokens)
    elseif tokens then add(limit, bucket > edge and bucket or latest, tokens - limit.cost) end
  end
end
return statuses(limits, {1})
`;

/**
 * Reads statuses. Arguments after the clock: node, limits. Returns 1 and the statuses; only -1 if the session has
 * ended.
 */
const LOOK = `
if not alive(ARGV[2]) then return {-1} end
local limits = parse(ARGV[3])
for _, limit in ipairs(limits) do read(limit) end
return statuses(limits, {1})
`;

/**
 * Begins the session of a node. Frees everything that it holds for other requests than the running ones, which no
 * longer count as lost.
 *
 * Arguments after the clock: node; length of its lease; ids of its running requests. Returns the number of nodes.
 */
const JOIN = `
local node, runs = ARGV[2], {}
for at = 4, #ARGV do
  runs[ARGV[at]] = true
  redis.call('HDEL', lost, ARGV[at])
end
local flat = redis.call('HGETALL', prefix .. 'held:' .. node)
for at = 1, #flat, 2 do
  if not runs[flat[at]] then free(node, flat[at], flat[at + 1], false) end
end
redis.call('ZADD', nodes, now + ARGV[3], node)
redis.call('PEXPIRE', nodes, ${NODE_KEYS_EXPIRY_MS})
return {redis.call('ZCOUNT', nodes, '(' .. string.format('%.0f', now), '+inf')}
`;

/**
 * Renews the session of a node.
 *
 * Arguments after the clock: node; length of its lease; milliseconds since the store answered it, or an empty text.
 * Returns the number of nodes, whether more slots are to be freed at once, milliseconds since the store answered
 * another node (or -1), and the number of lost requests; only -1 if the session has ended.
 */
const BEAT = `
local node = ARGV[2]
if not alive(node) then return {-1} end
redis.call('ZADD', nodes, now + ARGV[3], node)
for _, key in ipairs({nodes, prefix .. 'held:' .. node}) do redis.call('PEXPIRE', key, ${NODE_KEYS_EXPIRY_MS}) end
local longest = now + math.max(${MAX_LEASE_MS}, ARGV[3])
for _, late in ipairs(redis.call('ZRANGEBYSCORE', nodes, '(' .. string.format('%.0f', longest), '+inf')) do
  redis.call('ZADD', nodes, longest, late)
end
local more = free_dead()
local reach, ago = prefix .. 'reach', -1
if ARGV[4] == '' then redis.call('ZREM', reach, node)
else
  redis.call('ZADD', reach, now - ARGV[4], node)
  redis.call('PEXPIRE', reach, ${NODE_KEYS_EXPIRY_MS})
end
local found = redis.call('ZREVRANGE', reach, 0, -1, 'WITHSCORES')
for at = 1, #found, 2 do
  if not alive(found[at]) then redis.call('ZREM', reach, found[at])
  elseif found[at] ~= node and ago < 0 then ago = math.max(0, now - found[at + 1]) end
end
return {redis.call('ZCOUNT', nodes, '(' .. string.format('%.0f', now), '+inf'), more, ago, redis.call('HLEN', lost)}
`;

/**
 * Ends the session of a node, so that its other commands no longer have any effect, and frees some of its requests.
 * Arguments after the clock: node. Returns 1 if more are to be freed.
 */
const RETIRE = `
redis.call('ZADD', nodes, 'XX', 0, ARGV[2])
return {free_some(ARGV[2], false)}
`;

/**
 * Deletes lost requests that were entered into the ledger. Arguments after the clock: their ids. Returns some of the
 * other lost requests, with their facts.
 */
const LOST = `
for at = 2, #ARGV do redis.call('HDEL', lost, ARGV[at]) end
return redis.call('HRANDFIELD', lost, ${FREED_PER_CALL}, 'WITHVALUES')
`;

/** Deletes the facts of ended requests whose entries are durable. Arguments after the clock: node; their ids. */
const FORGET = `
for at = 3, #ARGV do redis.call('HDEL', prefix .. 'held:' .. ARGV[2], ARGV[at]) end
return {1}
`;

/** All scripts. */
export const SCRIPTS = {
  take: COMMON + TAKE,
  end: COMMON + END,
  look: COMMON + LOOK,
  join: COMMON + JOIN,
  beat: COMMON + BEAT,
  retire: COMMON + RETIRE,
  lost: COMMON + LOST,
  forget: COMMON + FORGET,
} as const;

/** Name of a script. */
export type ScriptName = keyof typeof SCRIPTS;
