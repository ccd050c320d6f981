"""Equal bits from MuJoCo Warp: what its threads add up in the order of their arrival is put in order first.

MuJoCo Warp 4.0 gives a world's constraints their rows by atomic counters, so that their order, and with it the rounding of
every sum over them, changes from run to run; the sort that its `opt.deterministic` is to switch on is empty there. Here is
that sort, and the three other sums whose order matters for Gymnasium's models.
"""

# ruff: noqa: UP018, RUF046
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import warp as wp
from mujoco_warp._src import constraint, solver, support, types

CONTACT = wp.constant(int(types.ConstraintType.CONTACT_FRICTIONLESS))  # this kind of constraint and above are contacts
QUADRATIC = wp.constant(int(types.ConstraintState.QUADRATIC))


@wp.func
def key_of(kinds: wp.array2d[int], names: wp.array2d[int], geoms: wp.array[wp.vec2i], world: int, row: int) -> wp.int64:
    """Kind, pair of geoms and number of a constraint; contacts of one pair are numbered by one thread, in order."""
    name = names[world, row]
    pair = wp.vec2i(0, 0)
    if kinds[world, row] >= CONTACT:
        pair = geoms[name]
    key = (wp.int64(kinds[world, row]) << wp.int64(24)) + (wp.int64(pair[0]) << wp.int64(12)) + wp.int64(pair[1])
    return (((key << wp.int64(24)) + wp.int64(name)) << wp.int64(12)) + wp.int64(row)


@wp.kernel(enable_backward=False)
def rank_rows(
    count: wp.array[int],
    most: int,
    kinds: wp.array2d[int],
    names: wp.array2d[int],
    geoms: wp.array[wp.vec2i],
    ranks: wp.array2d[int],
) -> None:
    world, row = wp.tid()
    rows = wp.min(count[world], most)
    if row >= rows:
        return
    mine = key_of(kinds, names, geoms, world, row)
    rank = int(0)
    for other in range(rows):
        if key_of(kinds, names, geoms, world, other) < mine:
            rank += 1
    ranks[world, row] = rank


@wp.struct
class Rows:
    """The rows of all worlds' constraints, as MuJoCo Warp keeps them."""

    count: wp.array[int]
    most: int
    jacobian: wp.array3d[float]
    kind: wp.array2d[int]
    name: wp.array2d[int]
    pos: wp.array2d[float]
    margin: wp.array2d[float]
    mass: wp.array2d[float]
    vel: wp.array2d[float]
    aref: wp.array2d[float]
    loss: wp.array2d[float]
    address: wp.array2d[int]  # of a contact's rows


@wp.kernel(enable_backward=False)
def put_aside(rows: Rows, ranks: wp.array2d[int], floats: wp.array3d[float], ints: wp.array3d[int]) -> None:
    world, row, column = wp.tid()
    if row >= wp.min(rows.count[world], rows.most):
        return
    rank = ranks[world, row]
    width = rows.jacobian.shape[2]
    if column < width:
        floats[world, rank, column] = rows.jacobian[world, row, column]
        return
    floats[world, rank, width] = rows.pos[world, row]
    floats[world, rank, width + 1] = rows.margin[world, row]
    floats[world, rank, width + 2] = rows.mass[world, row]
    floats[world, rank, width + 3] = rows.vel[world, row]
    floats[world, rank, width + 4] = rows.aref[world, row]
    floats[world, rank, width + 5] = rows.loss[world, row]
    kind = rows.kind[world, row]
    name = rows.name[world, row]
    ints[world, rank, 0] = kind
    ints[world, rank, 1] = name
    if kind >= CONTACT:
        ints[world, rank, 2] = row - rows.address[name, 0]  # which of the contact's rows it is


@wp.kernel(enable_backward=False)
def put_back(rows: Rows, floats: wp.array3d[float], ints: wp.array3d[int]) -> None:
    world, row, column = wp.tid()
    if row >= wp.min(rows.count[world], rows.most):
        return
    width = rows.jacobian.shape[2]
    if column < width:
        rows.jacobian[world, row, column] = floats[world, row, column]
        return
    rows.pos[world, row] = floats[world, row, width]
    rows.margin[world, row] = floats[world, row, width + 1]
    rows.mass[world, row] = floats[world, row, width + 2]
    rows.vel[world, row] = floats[world, row, width + 3]
    rows.aref[world, row] = floats[world, row, width + 4]
    rows.loss[world, row] = floats[world, row, width + 5]
    kind = ints[world, row, 0]
    name = ints[world, row, 1]
    rows.kind[world, row] = kind
    rows.name[world, row] = name
    if kind >= CONTACT:
        rows.address[name, ints[world, row, 2]] = row


def sort_rows(model: Any, data: Any) -> None:
    """Order each world's constraints by what they are: by kind, then by joint or by pair of geoms."""
    efc, worlds, most = data.efc, data.nworld, data.njmax
    rows = Rows()
    rows.count, rows.most, rows.jacobian, rows.kind, rows.name = data.nefc, most, efc.J, efc.type, efc.id
    rows.pos, rows.margin, rows.mass, rows.vel, rows.aref, rows.loss = (
        efc.pos,
        efc.margin,
        efc.D,
        efc.vel,
        efc.aref,
        efc.frictionloss,
    )
    rows.address = data.contact.efc_address
    width = efc.J.shape[2]
    ranks = wp.empty((worlds, most), dtype=int)
    floats, ints = wp.empty((worlds, most, width + 6), dtype=float), wp.empty((worlds, most, 3), dtype=int)
    wp.launch(rank_rows, (worlds, most), inputs=[data.nefc, most, efc.type, efc.id, data.contact.geom], outputs=[ranks])
    wp.launch(put_aside, (worlds, most, width + 1), inputs=[rows, ranks], outputs=[floats, ints])
    wp.launch(put_back, (worlds, most, width + 1), inputs=[rows, floats, ints])


@wp.kernel(enable_backward=False)
def add_changes(
    jacobian: wp.array3d[float],
    mass: wp.array2d[float],
    state: wp.array2d[int],
    changed: wp.array2d[int],
    count: wp.array[int],
    hessian: wp.array3d[float],
) -> None:
    """The solver's change of its matrix, by the numbers of the rows that changed and not by their arrival."""
    world, element = wp.tid()
    changes = count[world]
    if changes == 0:
        return
    high = (int(wp.sqrt(float(1 + 8 * element))) - 1) // 2
    low = element - (high * (high + 1)) // 2
    delta = float(0.0)
    last = int(-1)
    for _ in range(changes):
        row = int(1 << 30)
        for place in range(changes):
            other = changed[world, place]
            if other > last and other < row:
                row = other
        last = row
        term = mass[world, row] * jacobian[world, row, low] * jacobian[world, row, high]
        if state[world, row] == QUADRATIC:
            delta += term
        else:
            delta -= term
    if delta != 0.0:
        hessian[world, low, high] += delta


@wp.func
def gradient(
    smooth: wp.array2d[float], constrained: wp.array2d[float], inertial: wp.array2d[float], world: int, dof: int
) -> float:
    return inertial[world, dof] - smooth[world, dof] - constrained[world, dof]


@wp.func
def write_gradient(
    smooth: wp.array2d[float],
    constrained: wp.array2d[float],
    inertial: wp.array2d[float],
    world: int,
    dof: int,
    grad: wp.array2d[float],
    square: wp.array[float],
) -> None:
    grad[world, dof] = gradient(smooth, constrained, inertial, world, dof)
    if dof == 0:
        total = float(0.0)
        for each in range(smooth.shape[1]):
            part = gradient(smooth, constrained, inertial, world, each)
            total += part * part
        square[world] = total


@wp.kernel(enable_backward=False)
def whole_gradient(
    smooth: wp.array2d[float],
    constrained: wp.array2d[float],
    inertial: wp.array2d[float],
    changed: wp.array[int],
    done: wp.array[bool],
    grad: wp.array2d[float],
    square: wp.array[float],
) -> None:
    world, dof = wp.tid()
    if not done[world]:
        write_gradient(smooth, constrained, inertial, world, dof, grad, square)


@wp.kernel(enable_backward=False)
def changed_gradient(
    smooth: wp.array2d[float],
    constrained: wp.array2d[float],
    inertial: wp.array2d[float],
    changed: wp.array[int],
    done: wp.array[bool],
    grad: wp.array2d[float],
    square: wp.array[float],
) -> None:
    world, dof = wp.tid()
    if not done[world] and changed[world] != 0:
        write_gradient(smooth, constrained, inertial, world, dof, grad, square)


@wp.kernel(enable_backward=False)
def add_forces(
    cone: int,
    most: int,
    roots: wp.array[int],
    bodies: wp.array[int],
    centers: wp.array2d[wp.vec3],
    place: wp.array[wp.vec3],
    frame: wp.array[wp.mat33],
    friction: wp.array[types.vec5],
    size: wp.array[int],
    geoms: wp.array[wp.vec2i],
    address: wp.array2d[int],
    adhesion: wp.array[float],
    contacts: wp.array[int],
    count: wp.array[int],
    kinds: wp.array2d[int],
    names: wp.array2d[int],
    force: wp.array2d[float],
    out: wp.array2d[wp.spatial_vector],
) -> None:
    """The contacts' forces on the bodies of a world, in the order of its rows."""
    world = wp.tid()
    for body in range(out.shape[1]):
        out[world, body] = wp.spatial_vector()
    for row in range(wp.min(count[world], most)):
        name = names[world, row]
        if kinds[world, row] >= CONTACT and address[name, 0] == row:
            given = support.contact_force_fn(
                cone, frame, friction, size, address, adhesion, force, most, contacts, world, name, True
            )
            first = bodies[geoms[name][0]]
            second = bodies[geoms[name][1]]
            if first != 0:
                out[world, first] -= support.transform_force(given, centers[world, roots[first]] - place[name])
            if second != 0:
                out[world, second] += support.transform_force(given, centers[world, roots[second]] - place[name])


def contact_forces(model: Any, data: Any) -> None:
    """`cfrc_ext` of a model without forces from outside, equality constraints or spatial tendons."""
    contact, efc = data.contact, data.efc
    inputs = [model.opt.cone, data.njmax, model.body_rootid, model.geom_bodyid, data.subtree_com, contact.pos, contact.frame]
    inputs += [contact.friction, contact.dim, contact.geom, contact.efc_address, contact.adhesion, data.nacon]
    inputs += [data.nefc, efc.type, efc.id, efc.force]
    wp.launch(add_forces, data.nworld, inputs=inputs, outputs=[data.cfrc_ext])


@contextlib.contextmanager
def in_order() -> Iterator[None]:
    """Within it, what MuJoCo Warp launches for a model whose `opt.deterministic` asks for it adds up in order."""
    with (
        mock.patch.object(constraint, "_sort_constraints", sort_rows),
        mock.patch.object(solver, "_update_gradient_h_incremental", add_changes),
        mock.patch.object(
            solver, "_update_gradient_grad", lambda fast, _=False: changed_gradient if fast else whole_gradient
        ),
    ):
        yield
