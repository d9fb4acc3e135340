"""What scripts/build_wheels.py and scripts/test_wheels.py are made of.

platforms names the wheels; native builds a library for one; musl and elfobject
are its link step for musl; pack and sdist make the files; binaries reads them
back and checks says what is wrong with them; hosts loads them.
"""
