"""A wheel, tried in a moment: ops, arrays, a product, a failure, and an exit with work to drain."""

import weft

engine, ran = weft.Engine(2), list[int]()
x = engine.new_variable()
for number in range(1000):
    engine.push(lambda number=number: ran.append(number), (), (x,))
engine.wait_for_var(x, timeout=60)
assert ran == list(range(1000))
a = weft.ones((200, 300))
assert float((a @ a.T + 1).sum()) == 200 * 200 * 301
engine.push(lambda: 1 / 0, (), (x,))
try:
    engine.wait_for_var(x, timeout=60)
except ZeroDivisionError:
    print("ops, arrays and failures are as they should be")
weft.get_engine().push(lambda: print("and so is the exit"))
