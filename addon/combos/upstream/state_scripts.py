"""What runs inside the server that keeps shared state: one script to join a group, one to push. Each is one step for
everybody else, so that stamps are compared and sums are added where they lie.

`sums` is a hash of totals with the `epoch` and `version` beside them; it outlives the last proxy by a minute.
`registers` is a hash of stamped values; it is kept as long as the longest cooldown. `mark` says which session of a
replica is the last one and which of its pushes was applied last: a push that arrives late, or twice, is refused.
"""

SUMS_MS = 60_000
REGISTERS_MS = 25 * 3_600_000
MARK_MS = 3_600_000

JOIN = """
-- KEYS: sums, registers, mark. ARGV: lives of the three, an epoch for sums that are none, session, cell, total, …
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch or #epoch ~= 16 then
  epoch = ARGV[4]
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'version', '0')
  for at = 6, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
end
local mark = redis.call('GET', KEYS[3])
local applied = mark and string.match(mark, '^%x+:(%d+)$') or '0'
redis.call('SET', KEYS[3], ARGV[5] .. ':' .. applied, 'PX', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local time = redis.call('TIME')
local version = redis.call('HGET', KEYS[1], 'version')
return {time[1], time[2], epoch, version, applied, redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
"""

PUSH = """
-- KEYS as above. ARGV: lives, channel, epoch, session, replica, number, then sections: a count and its rows.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[5] then return 'epoch' end
local session, applied = string.match(redis.call('GET', KEYS[3]) or '', '^(%x+):(%d+)$')
if session ~= ARGV[6] or tonumber(applied) >= tonumber(ARGV[8]) then return 'session' end
local now_ms = tonumber(redis.call('TIME')[1]) * 1000
local version = redis.call('HINCRBY', KEYS[1], 'version', 1)
local told = {ARGV[5], string.format('%.0f', version), ARGV[7], ARGV[8]}
local at = 9
local function section(width, each)
  local count = tonumber(ARGV[at])
  local first = at + 1
  at = first + count * width
  for row = first, at - 1, width do each(ARGV[row], ARGV[row + 1]) end
  return count
end
local function tell(count, rows)
  told[#told + 1] = string.format('%.0f', count)
  for _, text in ipairs(rows) do told[#told + 1] = text end
end

local rows = {}
local count = section(1, function(combo)
  rows[#rows + 1] = combo
  local mine = '["' .. combo .. '",'
  for _, cell in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.sub(cell, 2, #mine + 1) == mine then redis.call('HDEL', KEYS[1], cell) end
  end
end)
tell(count, rows)

rows = {}
count = section(2, function(cell, addition)
  local sum = redis.pcall('HINCRBY', KEYS[1], cell, addition)
  if type(sum) == 'table' then redis.call('HSET', KEYS[1], cell, addition) end
  rows[#rows + 1] = cell
  rows[#rows + 1] = redis.call('HGET', KEYS[1], cell)
end)
tell(count, rows)

rows = {}
count = section(2, function(field, text)
  local known = redis.call('HGET', KEYS[2], field)
  local stamp, at_ms = string.match(known or '', '^((%x+)%.%x+) ')
  local ahead = stamp and (#stamp ~= 33 or tonumber(at_ms, 16) > now_ms + 86460000)
  if not stamp or ahead or stamp < string.sub(text, 1, 33) then redis.call('HSET', KEYS[2], field, text) end
  rows[#rows + 1] = field
  rows[#rows + 1] = text
end)
tell(count, rows)

section(2, function(field, stamp)
  local known = redis.call('HGET', KEYS[2], field)
  if known and string.sub(known, 1, 33) == stamp then redis.call('HDEL', KEYS[2], field) end
end)

redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('SET', KEYS[3], session .. ':' .. ARGV[8], 'PX', ARGV[3])
redis.call('PUBLISH', ARGV[4], cjson.encode(told))
return 'ok'
"""
